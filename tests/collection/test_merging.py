"""What two people made of one file."""

from __future__ import annotations

import pytest

from godwit.collection.merging import merged


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        (b"a\nB\nc\nd\n", b"a\nb\nc\nD\n", b"a\nB\nc\nD\n"),
        (b"a\nb\nc\nd\n", b"a\nb\nc\nD\n", b"a\nb\nc\nD\n"),
        (b"a\nB\nc\nd\n", b"a\nX\nc\nd\n", None),
    ],
)
def test_lines_of_both_come_together_unless_they_contradict(ours: bytes, theirs: bytes, expected: bytes | None) -> None:
    assert merged("notes.txt", b"a\nb\nc\nd\n", ours, theirs) == expected


def test_a_calendar_is_merged_by_its_tree() -> None:
    base = b'<c><e id="1">ten</e><e id="2">noon</e></c>'
    ours = b'<c><e id="1">eleven</e><e id="2">noon</e></c>'
    theirs = b'<c>\n<e id="1">ten</e><e id="2">noon</e><e id="3">six</e></c>'.replace(b"\n", b"")
    both = merged("plan.xml", base, ours, theirs)
    assert both is not None
    assert b'<e id="1">eleven</e><e id="2">noon</e><e id="3">six</e>' in both
    without = b'<c><e id="2">noon</e></c>'
    assert merged("plan.xml", base, ours, without) is None
    assert merged("plan.xml", base, ours, b"<c>") is None


def test_what_is_no_text_is_not_merged() -> None:
    assert merged("a.jpg", b"\xff1", b"\xff2", b"\xff3") is None
