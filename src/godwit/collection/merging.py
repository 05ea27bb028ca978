"""Three-way merges: what two people made of one file becomes one, or nothing where they contradict each other.

Text goes line by line (merge3). XML goes by its tree (xmldiff): what they changed is applied to ours, and what we
changed to theirs. Only where both ways give the same document is it one.
"""

from __future__ import annotations

SUFFIXES_XML = (".xml", ".svg", ".gpx", ".kml", ".xcal", ".html")
IDS = ["id", "{http://www.w3.org/XML/1998/namespace}id"]


def merged(name: str, base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Both changes together; None where only a person can tell."""
    if ours == theirs or theirs == base:
        return ours
    if ours == base:
        return theirs
    if name.lower().endswith(SUFFIXES_XML):
        return _of_trees(base, ours, theirs)
    return _of_lines(base, ours, theirs)


def _of_lines(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    from merge3 import Merge3

    try:
        first, own, other = (one.decode().splitlines(keepends=True) for one in (base, ours, theirs))
    except UnicodeDecodeError:
        return None
    groups = list(Merge3(first, own, other).merge_groups())
    if any(group[0] == "conflict" for group in groups):
        return None
    return "".join(line for group in groups for line in group[1]).encode()


def _of_trees(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    from lxml import etree

    try:
        one = _patched(base, theirs, ours)
        other = _patched(base, ours, theirs)
    except etree.XMLSyntaxError:
        return None
    if one is None or other is None or etree.tostring(one, method="c14n") != etree.tostring(other, method="c14n"):
        return None
    said: bytes = etree.tostring(one, xml_declaration=True, encoding="utf-8")
    return said


def _patched(base: bytes, changed: bytes, onto: bytes):  # type: ignore[no-untyped-def]
    """What was changed since the base, applied to another document; None where that does not fit."""
    from lxml import etree
    from xmldiff import main

    # Nothing from elsewhere is read for what somebody wrote.
    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    trees = [etree.fromstring(text, parser) for text in (base, changed, onto)]
    actions = main.diff_trees(trees[0], trees[1], diff_options={"uniqueattrs": IDS})
    try:
        return main.patch_tree(actions, trees[2])
    except (IndexError, KeyError, ValueError, AttributeError, etree.XPathError):
        return None
