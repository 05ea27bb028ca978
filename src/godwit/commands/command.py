"""How a command is made: a struct of what can be typed, and one function from it to an exit status.

    class TopOptions(msgspec.Struct, frozen=True, kw_only=True):
        address: Annotated[str, typer.Argument(metavar="HOST:PORT", help="Where a broker answers.")] = "127.0.0.1:9883"
        once: Annotated[bool, typer.Option(help="Look once, and leave.")] = False

    @command(app)
    def top(options: TopOptions) -> int:
        '''Look into a running broker.'''  # this is what `godwit top --help` prints

Every option is written once, as a field. Options that several commands share are a struct of their own: a field of
that type takes them all in, and the field's default, where it has one, holds their defaults. Tests call the function
with a struct that they made; nothing is found by its name.

`godwit --help` imports all modules with commands. They import what takes long to load inside of functions.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Annotated, Any, TypeVar, get_type_hints

import msgspec
import typer
from msgspec.structs import FieldInfo, fields

KEYWORD = inspect.Parameter.KEYWORD_ONLY
UNUSABLE = 2
"""Exit status where something that is needed is missing or cannot be read."""

PARTS = {"pyarrow": "arrow", "matplotlib": "lab", "scipy": "lab", "starlette": "console", "uvicorn": "console"}
"""Which part of the installation brings a library, where the command does not say it."""

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object; all else goes to stderr.")]
JsonLines = Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")]

Options = TypeVar("Options", bound=msgspec.Struct)


def command(
    group: typer.Typer, name: str | None = None, *, extra: str | None = None
) -> Callable[[Callable[[Options], int]], Callable[[Options], int]]:
    """Add a function to a group as a command of its name, or of the one given; the function itself stays as it is.

    `extra` is the part of the installation, as in `godwit[lab]`, that brings libraries which the function needs.
    Where it is not given, `PARTS` says so.
    """

    def added(work: Callable[[Options], int]) -> Callable[[Options], int]:
        struct = struct_of(work)

        @wraps(work)
        def typed(context: typer.Context, **values: Any) -> None:
            from godwit.commands.console import errors_told

            with errors_told(), _missing_told(context, extra):
                status = work(gathered(struct, values))
            raise typer.Exit(status)

        parameters = [inspect.Parameter("context", KEYWORD, annotation=typer.Context), *_parameters(struct, None)]
        typed.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        typed.__annotations__ = {one.name: one.annotation for one in parameters}
        group.command(name, help=pasteable(work.__doc__ or ""))(typed)
        return work

    return added


def pasteable(text: str) -> str:
    """A docstring as help. What is indented in it are examples, which no terminal is too narrow for: a line that was
    broken could not be pasted."""
    parts = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(f"\b\n{part}" if part.startswith("    ") else part for part in parts)


def struct_of(work: Callable[[Options], int]) -> type[Options]:
    """The struct of what can be typed: the type of the function's one parameter."""
    types = get_type_hints(work)
    (parameter,) = inspect.signature(work).parameters
    struct: type[Options] = types[parameter]
    return struct


def gathered(struct: type[Options], values: dict[str, Any]) -> Options:
    """The struct of these values, and inside of it the structs of options that are shared."""
    return struct(
        **{
            field.name: gathered(field.type, values) if _is_shared(field) else values[field.name]
            for field in fields(struct)
        }
    )


def _parameters(struct: type[msgspec.Struct], given: msgspec.Struct | None) -> Iterator[inspect.Parameter]:
    """A parameter for each field; `given` has the defaults, where not the struct itself has them."""
    for field in fields(struct):
        default: Any = _default(field) if given is None else getattr(given, field.name)
        if _is_shared(field):
            yield from _parameters(field.type, None if default is inspect.Parameter.empty else default)
        else:
            yield inspect.Parameter(field.name, KEYWORD, default=default, annotation=field.type)


def _is_shared(field: FieldInfo) -> bool:
    return isinstance(field.type, type) and issubclass(field.type, msgspec.Struct)


def _default(field: FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return inspect.Parameter.empty if field.default is msgspec.NODEFAULT else field.default


@contextmanager
def _missing_told(context: typer.Context, extra: str | None) -> Iterator[None]:
    """Turn a library that is not installed into one line on stderr and exit status 2."""
    try:
        yield
    except ModuleNotFoundError as missing:
        library = (missing.name or "").partition(".")[0]
        part = extra or PARTS.get(library)
        if part is None:
            raise
        what = context.command_path.partition(" ")[2]
        typer.echo(f"godwit: {what} needs {library}, which comes with godwit[{part}]", err=True)
        raise typer.Exit(UNUSABLE) from None
