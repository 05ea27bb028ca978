"""A command is a struct of options and a function: each option is written once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import msgspec
import pytest
import typer
from typer.testing import CliRunner

from godwit.commands.command import command, gathered
from godwit.commands.console import InputError


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Options that several commands share."""

    host: Annotated[str, typer.Option(help="Where.")] = "here"
    port: Annotated[int, typer.Option(min=1)] = 1883


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    what: Annotated[str, typer.Argument(metavar="WHAT", help="What is wanted.")]
    often: Annotated[int, typer.Option("--often", "-o", min=0)] = 1
    also: Annotated[list[str], typer.Option()] = msgspec.field(default_factory=list)
    place: Place = Place(host="there")


GOT: list[Wanted] = []


def wanted(options: Wanted) -> int:
    """Want something.

    Examples:

        wanted bread
    """
    GOT.append(options)
    return options.often


def app_of(work: Callable[[Wanted], int], **said: str) -> typer.Typer:
    app = typer.Typer(rich_markup_mode=None)
    command(app, **said)(work)
    app.command()(lambda: None)
    return app


def test_what_was_typed_arrives_as_the_struct_and_what_comes_back_is_the_exit_status() -> None:
    result = CliRunner().invoke(app_of(wanted), ["wanted", "bread", "-o", "3", "--also", "salt", "--port", "7"])
    assert (result.exit_code, GOT.pop()) == (
        3,
        Wanted(what="bread", often=3, also=["salt"], place=Place(host="there", port=7)),
    )


def test_what_was_not_typed_is_as_the_struct_says_and_as_the_shared_field_says() -> None:
    assert CliRunner().invoke(app_of(wanted), ["wanted", "bread"]).exit_code == 1
    assert GOT.pop() == Wanted(what="bread", place=Place(host="there", port=1883))


def test_help_shows_the_docstring_and_every_option_of_both_structs() -> None:
    shown = CliRunner().invoke(app_of(wanted), ["wanted", "--help"]).stdout
    for text in ("Want something.", "wanted bread", "WHAT", "--often, -o", "--also", "--host", "--port", "Where."):
        assert text in shown.replace("-o, --often", "--often, -o"), text


@pytest.mark.parametrize("typed", [[], ["bread", "--often", "-1"], ["bread", "--port", "x"], ["bread", "--no-such"]])
def test_what_no_field_takes_is_refused_before_the_work(typed: list[str]) -> None:
    assert CliRunner().invoke(app_of(wanted), ["wanted", *typed]).exit_code == 2
    assert GOT == []


def test_the_function_itself_stays_as_it_was_for_tests_and_others() -> None:
    app = typer.Typer()
    assert command(app)(wanted) is wanted
    assert gathered(Wanted, {"what": "a", "often": 2, "also": [], "host": "b", "port": 3}) == Wanted(
        what="a", often=2, place=Place(host="b", port=3)
    )


def test_input_that_cannot_be_read_is_one_line_and_status_2() -> None:
    def failing(options: Wanted) -> int:
        raise InputError(f"{options.what}: there is none")

    result = CliRunner().invoke(app_of(failing), ["failing", "bread"])
    assert (result.exit_code, result.stderr) == (2, "godwit: bread: there is none\n")


def test_a_missing_library_is_told_with_the_part_of_the_installation_that_brings_it() -> None:
    def failing(options: Wanted) -> int:
        raise ModuleNotFoundError("No module named 'scipy'", name="scipy")

    result = CliRunner().invoke(app_of(failing, extra="lab"), ["failing", "bread"])
    assert (result.exit_code, result.stderr) == (2, "godwit: failing needs scipy, which comes with godwit[lab]\n")
    assert CliRunner().invoke(app_of(failing), ["failing", "bread"]).stderr == result.stderr


def test_a_missing_library_that_no_part_brings_is_an_error_of_ours() -> None:
    def failing(options: Wanted) -> int:
        raise ModuleNotFoundError("No module named 'bread'", name="bread")

    assert isinstance(CliRunner().invoke(app_of(failing), ["failing", "bread"]).exception, ModuleNotFoundError)
