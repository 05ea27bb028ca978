"""Which test proves which feature of the specs: `python -m tools.features [--spec NAME]`.

Tests say it themselves, with `@pytest.mark.feature("content-routing F5")`; docs/features has the titles.
"""

from __future__ import annotations

import argparse
import io
import shutil
import sys
import textwrap
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TITLES = ROOT / "docs" / "features"

Titles = Mapping[str, Mapping[str, str]]
"""By spec and number, as in `titles["content-routing"]["F5"]`."""

Proofs = Mapping[str, Counter[str]]
"""By feature, as in `proofs["content-routing F5"]`: the tests that name it, and the number of cases of each."""


class CollectionError(Exception):
    """Some test module cannot be imported; the message is what pytest says about it."""


def main(arguments: Sequence[str] | None = None) -> int:
    titles = read_titles(TITLES)
    parser = argparse.ArgumentParser(description="Each feature of the specs with the tests that prove it.")
    parser.add_argument("--spec", choices=sorted(titles), help="only this one")
    spec = parser.parse_args(arguments).spec
    try:
        proofs = collect()
    except CollectionError as error:
        print(error, file=sys.stderr)
        return 1
    width = shutil.get_terminal_size((120, 24)).columns
    for line in report({spec: titles[spec]} if spec else titles, proofs, width):
        print(line)
    for name in unknown(titles, proofs):
        print(f"no such feature: {name!r}, named by {', '.join(proofs[name])}", file=sys.stderr)
    return 1 if unknown(titles, proofs) else 0


def read_titles(folder: Path) -> Titles:
    return {file.stem: tomllib.loads(file.read_text()) for file in sorted(folder.glob("*.toml"))}


def collect() -> Proofs:
    """Ask pytest itself, so that marks on modules, classes and parameters count as they do in a run."""

    class Listener:
        items: Sequence[pytest.Item] = ()

        def pytest_collection_finish(self, session: pytest.Session) -> None:
            self.items = session.items

    listener = Listener()
    with redirect_stdout(io.StringIO()) as said:
        status = pytest.main(["--collect-only", "--quiet", f"--rootdir={ROOT}", str(ROOT / "tests")], [listener])
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise CollectionError(said.getvalue())
    return proofs_of(listener.items)


def proofs_of(items: Iterable[pytest.Item]) -> Proofs:
    proofs: dict[str, Counter[str]] = {}
    for item in items:
        for feature in {name for mark in item.iter_markers("feature") for name in mark.args}:
            proofs.setdefault(feature, Counter())[item.nodeid.partition("[")[0]] += 1
    return proofs


def unknown(titles: Titles, proofs: Proofs) -> list[str]:
    """The features that tests name and no spec has."""
    known = {f"{spec} {number}" for spec, features in titles.items() for number in features}
    return sorted(set(proofs) - known)


def report(titles: Titles, proofs: Proofs, width: int) -> Iterator[str]:
    closing = []
    for spec, features in titles.items():
        yield spec
        for number, title in features.items():
            tests = proofs.get(f"{spec} {number}", Counter())
            yield from textwrap.wrap(f"{number:<4} {title}", width, initial_indent="  ", subsequent_indent=" " * 7)
            yield from proven_by(tests, width)
        yield ""
        proven = sum(f"{spec} {number}" in proofs for number in features)
        closing.append(f"{spec:<18} {proven:>3} of {len(features)} features have tests")
    yield from closing


def proven_by(tests: Counter[str], width: int) -> Iterator[str]:
    """The tests of one feature, module by module."""
    by_module: dict[str, list[str]] = {}
    for test, cases in sorted(tests.items()):
        module, _, name = test.partition("::")
        by_module.setdefault(module, []).append(name if cases == 1 else f"{name} ({cases} cases)")
    for module, names in by_module.items():
        yield f"       {module}"
        yield from textwrap.wrap(", ".join(names), width, initial_indent=" " * 9, subsequent_indent=" " * 9)
    if not tests:
        yield "       no test"


if __name__ == "__main__":
    raise SystemExit(main())
