"""The table of docs/mqtt.md and the tests that are marked agree."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests" / "net" / "mqtt"
ROW = re.compile(r"^\| (MQTT-[\d.]+-\d+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
TEST = re.compile(r"`(test_\w+\.py)::(test_\w+)`")
UNSHOWN = ("not tested", "not applicable: ")


def rows() -> dict[str, str]:
    """By statement, what the table says of who shows it."""
    found = ROW.findall((ROOT / "docs" / "mqtt.md").read_text())
    assert len({statement for statement, _, _ in found}) == len(found), "a statement is listed twice"
    return {statement: shown for statement, _, shown in found}


def functions(path: Path) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef))


def marks() -> dict[str, set[tuple[str, str]]]:
    """By statement, the tests that are marked with it."""
    found = defaultdict(set)
    for path in TESTS.glob("test_*.py"):
        for function in functions(path):
            for statement in marked(function):
                found[statement].add((path.name, function.name))
    return found


def marked(function: ast.FunctionDef) -> Iterator[str]:
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.mqtt":
            yield from (str(ast.literal_eval(argument)) for argument in decorator.args)


def test_every_mark_is_in_the_table_and_every_row_names_its_tests() -> None:
    marked_tests = marks()
    table = {statement: set(TEST.findall(shown)) for statement, shown in rows().items()}
    assert set(marked_tests) <= set(table)
    for statement, tests in table.items():
        assert marked_tests[statement] <= tests, statement
        unmarked = tests - marked_tests[statement]
        assert not {test for test in unmarked if test[0].startswith("test_conformance")}, statement


def test_every_test_that_the_table_names_is_there() -> None:
    named = {test for shown in rows().values() for test in TEST.findall(shown)}
    there = {(path.name, function.name) for path in TESTS.glob("test_*.py") for function in functions(path)}
    assert named <= there


def test_a_row_without_a_test_says_so() -> None:
    for statement, shown in rows().items():
        assert TEST.search(shown) or shown.startswith(UNSHOWN), statement
