"""What can be typed, read as one language: each option has one name, one meaning and one form in all commands."""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import takewhile
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from godwit.cli import app


def walked(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Every command that does something, by what is typed for it."""
    if not hasattr(command, "commands"):
        yield " ".join(path), command
        return
    for name, below in command.commands.items():
        yield from walked(below, (*path, name))


COMMANDS = dict(walked(typer.main.get_command(app)))


def options() -> Iterator[tuple[str, Any]]:
    for name, command in COMMANDS.items():
        for one in command.params:
            if one.param_type_name == "option" and "--help" not in one.opts:
                yield name, one


@cache
def told(command: str, columns: int = 400) -> str:
    """The help, on a terminal of this width."""
    result = CliRunner().invoke(app, [*command.split(), "--help"], terminal_width=columns)
    assert result.exit_code == 0
    return result.stdout


NO_TABLE = {
    "serve": "says where it listens, then its log (--log json)",
    "console": "is a web page",
    "ready": "says one word",
    "pub": "says nothing",
    "collect": "keeps files",
    "backup": "writes a file",
    "restore": "writes a file",
    "password": "prints a hash",
    "token keys": "writes files",
    "token sign": "prints tokens, one a line",
    "neighbors export": "writes JSON itself, by the name of the file",
    "neighbors import": "says one line",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_whoever_prints_a_table_prints_json_too(command: str) -> None:
    has = any("--json" in one.opts for name, one in options() if name == command)
    assert has is (command not in NO_TABLE), f"{command}: {NO_TABLE.get(command, 'a table without --json')}"


def examples(text: str) -> list[str]:
    """What stands under that heading, each as it is shown, over as many lines as it has."""
    below = text.partition("Examples:")[2].split("\n\n")
    return [one.strip() for one in below if re.match(r"\s+(\w+=\S+ )?(.* \| )?godwit ", one)]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_examples_that_it_would_take(command: str) -> None:
    """Each is parsed as it is shown: its options exist, and what they are given is of their kind."""
    found = [one for one in examples(told(command, 80)) if f"godwit {command}" in one]
    assert found, "no example"
    for one in found:
        line = one[one.index(f"godwit {command}") :]
        words = list(takewhile(lambda word: word not in (">", "|", "&&"), shlex.split(line, comments=True)))
        COMMANDS[command].make_context(command, words[1 + len(command.split()) :]).close()


@pytest.mark.parametrize("command", COMMANDS)
def test_no_example_is_broken_by_a_narrow_terminal(command: str) -> None:
    assert examples(told(command, 60)) == examples(told(command, 400))


@pytest.mark.parametrize("command", COMMANDS)
def test_everything_that_can_be_typed_is_explained_and_its_default_is_shown(command: str) -> None:
    records = re.split(r"\n  (?=-)", told(command).partition("\nOptions:")[2])
    for one in COMMANDS[command].params:
        name = one.opts[0]
        if one.param_type_name == "argument" or "--help" in one.opts:
            continue
        line = next(found for found in records if re.match(rf"(-\w, )?{re.escape(name)}\b", found))
        assert one.help, f"{name} is not explained"
        assert one.help[0].isupper() or one.help[0] in "0." or ":" in one.help, one.help
        assert one.help[-1] in ".?", one.help
        valued = not one.is_flag and one.default not in (None, "", [])
        if valued or isinstance(one.show_default, str):
            assert "[default: " in line, line
        if one.required:
            assert "[required]" in line
    for one in COMMANDS[command].params:
        if one.param_type_name == "argument":
            assert one.help, f"{one.name} is not explained"
            assert one.metavar, f"{one.name} has no name that a reader sees"


HIDDEN = re.compile(r"\bunless told\b|\bdefault\b|\belse for ever\b|; \d[\d,.:]*\.$|; all( of them)?\.|; local\b")


def test_no_default_hides_in_the_words() -> None:
    assert [f"{name} {one.opts[0]}: {one.help}" for name, one in options() if HIDDEN.search(one.help)] == []


SAME = (
    {"--ca", "--cacert", "--authority"},
    {"--cert", "--certificate"},
    {"--topic", "--topics"},
    {"--replications", "--repetitions", "--seeds"},
    {"--experiments", "--studies", "--only"},
    {"--output", "--output-dir", "--folder", "--out"},
    {"--interval", "--period-s", "--every"},
    {"--timeout", "--within", "--wait"},
    {"--username", "--login", "--user"},
    {"--server", "--host", "--address", "--url", "--broker"},
    {"--max", "--limit"},
    {"--as-json", "--format", "--json"},
    {"--random-seed", "--seed"},
    {"--threads", "--processes", "--jobs", "--workers"},
    {"--force", "--assume-yes", "--yes"},
)
"""Names for one thing, of which commands use the last or a single one."""


@pytest.mark.parametrize("names", SAME, ids=lambda one: min(one))
def test_one_thing_has_one_name(names: set[str]) -> None:
    used = {opt for _, one in options() for opt in one.opts} & names
    assert len(used) <= 1, f"{sorted(used)} mean the same"


FORMS: dict[str, set[str | None]] = {
    "--data": {"DIR"},
    "--out": {"DIR", "FILE"},
    "--every": {"S", "TIME"},
    "--seeds": {"N"},
    "--seconds": {"S"},
    "--wait": {"S"},
    "--broker": {"HOST:PORT"},
    "--user": {"NAME"},
    "--authority": {"FILE"},
    "--certificate": {"FILE"},
    "--key": {"FILE", "COLUMNS"},
    "--limit": {"N"},
    "--count": {"N"},
    "--only": {"E", "STUDY"},
    "--fabric": {None, "tree|dht|adhoc"},
    "--listen": {"HOST:PORT"},
    "--profile": {"FILTER"},
    "--select": {"SQL"},
    "--where": {"SQL"},
    "--minutes": {"M"},
    "--late": {"TIME"},
    "--sizes": {"LIST"},
    "--speeds": {"LIST"},
    "--keep": {"S"},
    "--h3": {"RES"},
    "--master": {"URL"},
    "--conf": {"NAME=VALUE"},
}
"""What an option of several commands is given. A second form stands here only where the thing itself is another: a
file or a folder of results; seconds, or a time as Spark writes it; a key of TLS, or the key of a table."""


def test_an_option_is_given_the_same_in_all_commands() -> None:
    forms: defaultdict[str, set[str | None]] = defaultdict(set)
    of: defaultdict[str, set[str]] = defaultdict(set)
    for name, one in options():
        if not one.is_flag:
            forms[one.opts[0]].add(one.metavar)
            of[one.opts[0]].add(name)
    several = {opt: found for opt, found in forms.items() if len(of[opt]) > 1}
    assert {opt: found for opt, found in several.items() if len(found) > 1 and found != FORMS.get(opt)} == {}
    assert {opt: found for opt, found in several.items() if opt in FORMS and not found <= FORMS[opt]} == {}


def test_a_short_name_is_short_for_one_thing_in_all_commands() -> None:
    long: defaultdict[str, set[str]] = defaultdict(set)
    for _, one in options():
        for opt in one.opts:
            if not opt.startswith("--"):
                long[opt].add(max(one.opts, key=len))
    assert {short: names for short, names in long.items() if len(names) > 1} == {}
    broken = {
        f"{name} {one.opts[0]}"
        for name, one in options()
        for short, names in long.items()
        if names & set(one.opts) and short not in one.opts
    }
    assert broken == set(), "an option that is short elsewhere is short here too"


def test_arguments_come_in_one_order() -> None:
    """What is read comes before where it goes, and what is acted on before how; so do all that the commands share."""
    found = {
        name: [one.metavar for one in command.params if one.param_type_name == "argument"]
        for name, command in COMMANDS.items()
    }
    assert {name: order for name, order in found.items() if len(order) > 1} == {
        "backup": ["DIR", "FILE"],
        "restore": ["FILE", "DIR"],
        "match": ["EVENTS", "SUBS"],
        "pub": ["TOPIC", "MESSAGE"],
        "collect": ["FOLDER", "FILTER"],
        "pipeline mobility": ["POSITIONS", "SITES"],
        "pipeline match": ["EVENTS", "SUBS"],
        "pipeline publish": ["DIR", "TARGET"],
        "neighbors import": ["FILE", "DIR"],
    }
    assert {order[0] for name, order in found.items() if name in ("sub", "query", "get", "filter explain")} == {
        "FILTER"
    }
    assert {tuple(order) for name, order in found.items() if name in ("top", "ready")} == {("HOST:PORT",)}


def test_repeating_is_told_in_one_way() -> None:
    several = [(name, one) for name, one in options() if one.multiple]
    assert several
    assert [f"{name} {one.opts[0]}" for name, one in several if "May be repeated." not in one.help] == []
