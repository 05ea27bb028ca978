"""What `godwit filter explain` shows: the work is in `godwit.filters.explanation`."""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import cell_len

from godwit.commands.console import InputError, printable
from godwit.commands.match.sources import flat_object
from godwit.events import EventError, Value
from godwit.filters.errors import FilterError
from godwit.filters.explanation import Explanation, explanation
from godwit.filters.filters import FilterSet
from godwit.filters.syntax import FilterSyntaxError
from godwit.filters.text import parse


def explained(text: str, against: str | None, event: str | None) -> Explanation:
    """Raises `InputError` where a filter or the event is not well formed."""
    filters = parsed(text)
    other = None if against is None else parsed(against)
    return explanation(filters, other, None if event is None else _event(event))


def parsed(text: str) -> FilterSet:
    """The filter of a text; its `InputError` shows the text with a caret under what was wrong."""
    try:
        return parse(text)
    except FilterSyntaxError as error:
        line = text.split("\n")[error.line - 1]
        indent = " " * cell_len(printable(line[: error.column - 1]))
        raise InputError(f"{error}\n  {line}\n  {indent}^") from None
    except FilterError as error:
        raise InputError(str(error)) from None


def _event(text: str) -> dict[str, Value]:
    try:
        return flat_object(text.encode())
    except EventError as error:
        raise InputError(f"--event: {error}") from None


def told(explanation: Explanation) -> Iterator[str]:
    """The explanation in lines for people."""
    yield "In canonical form:"
    yield from _listed(explanation.canonical)
    yield "In Spark SQL:"
    yield f"  {explanation.spark or 'there is no condition that says the same'}"
    if explanation.against is not None:
        yield "Against:"
        yield from _listed(explanation.against.filter)
        yield f"  {explanation.against.sentence}"
    if explanation.event is not None:
        yield f"The event {'matches' if explanation.event.matches else 'does not match'}:"
        for one in explanation.event.alternatives:
            yield f"  {one.filter}"
            yield "    holds" if one.matches else f"    fails at {one.failed}: {one.because}"


def _listed(filters: list[str]) -> Iterator[str]:
    yield from (f"  {'OR ' if at else ''}{text}" for at, text in enumerate(filters))
    if not filters:
        yield "  nothing matches: the conditions contradict each other"
    if filters == ["TRUE"]:
        yield "  everything matches"
