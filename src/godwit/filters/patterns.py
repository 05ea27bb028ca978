"""SQL LIKE patterns as token tuples; matching, containment and intersection cost at most length times length."""

from __future__ import annotations

from functools import lru_cache

ANY_RUN, ANY_ONE = 0, 1
Pattern = tuple[str | int, ...]
"""Single characters, `ANY_ONE` for _ and `ANY_RUN` for %; never two runs side by side, never a one behind a run."""

ESCAPE = "\\"


@lru_cache(maxsize=4096)
def of(op: str, operand: str) -> Pattern:
    """The pattern of a positive string operator: equ, stw, end, in or like."""
    match op:
        case "equ":
            return tuple(operand)
        case "stw":
            return normal((*operand, ANY_RUN))
        case "end":
            return normal((ANY_RUN, *operand))
        case "in":
            return normal((ANY_RUN, *operand, ANY_RUN))
        case "like":
            return parse(operand)
    raise ValueError(f"no pattern for the operator {op!r}")


def parse(like: str) -> Pattern:
    tokens: list[str | int] = []
    characters = iter(like)
    for character in characters:
        if character == ESCAPE:
            tokens.append(next(characters, ESCAPE))
        elif character == "%":
            tokens.append(ANY_RUN)
        elif character == "_":
            tokens.append(ANY_ONE)
        else:
            tokens.append(character)
    return normal(tuple(tokens))


def normal(tokens: Pattern) -> Pattern:
    """In each stretch of wildcards the ones come first and one run stands for many: '%_%' is the same as '_%'."""
    out: list[str | int] = []
    run = False
    for token in tokens:
        if token == ANY_RUN:
            run = True
        elif token == ANY_ONE:
            out.append(ANY_ONE)
        else:
            if run:
                out.append(ANY_RUN)
                run = False
            out.append(token)
    if run:
        out.append(ANY_RUN)
    return tuple(out)


def to_like(pattern: Pattern) -> str:
    return "".join(
        "%"
        if token == ANY_RUN
        else "_"
        if token == ANY_ONE
        else ESCAPE + str(token)
        if token in ("%", "_", ESCAPE)
        else str(token)
        for token in pattern
    )


def simplest(like: str) -> tuple[str, str]:
    """The plainest (operator, operand) that accepts what the LIKE text accepts; ('exists', '') where that is all.

    '_%' becomes ('neq', ''), so that no pattern is left whose complement is a pattern too.
    """
    pattern = parse(like)
    if pattern == (ANY_RUN,):
        return "exists", ""
    if pattern == (ANY_ONE, ANY_RUN):
        return "neq", ""
    front = bool(pattern) and pattern[0] == ANY_RUN
    back = bool(pattern) and pattern[-1] == ANY_RUN
    inner = pattern[front : len(pattern) - back]
    if any(isinstance(token, int) for token in inner):
        return "like", to_like(pattern)
    op = {(False, False): "equ", (False, True): "stw", (True, False): "end", (True, True): "in"}[front, back]
    return op, "".join(map(str, inner))


def accepts(pattern: Pattern, text: str) -> bool:
    """Greedy matching that returns only to the last run: at most len(pattern) * len(text) steps for any pattern."""
    at, mark, retry = 0, -1, 0
    position = 0
    while position < len(text):
        token = pattern[at] if at < len(pattern) else None
        if token == ANY_RUN:
            mark, retry = at, position
            at += 1
        elif token == ANY_ONE or token == text[position]:
            at += 1
            position += 1
        elif mark >= 0:
            retry += 1
            position, at = retry, mark + 1
        else:
            return False
    return all(token == ANY_RUN for token in pattern[at:])


@lru_cache(maxsize=65536)
def contains(wide: Pattern, narrow: Pattern) -> bool:
    """Whether `wide` accepts all that `narrow` accepts; exact, since no two patterns name every character there is.

    `narrow` is matched as if its own symbols were text, and only a run absorbs a run: in its place may stand any number
    of characters that neither pattern names. The ones before a run are elastic, since '_%' is the same as '%_': runs of
    `narrow` between the characters that they take fall to the run.
    """
    columns = len(narrow)
    row = [True] + [False] * columns
    for token, elastic in zip(wide, _elastic(wide), strict=True):
        if elastic:
            for column, symbol in enumerate(narrow):
                row[column + 1] |= symbol == ANY_RUN and row[column]
        new = [token == ANY_RUN and row[0]]
        for column, symbol in enumerate(narrow):
            if token == ANY_RUN:
                new.append(row[column + 1] or new[column])
            else:
                fits = symbol == token or (token == ANY_ONE and symbol != ANY_RUN)
                new.append(row[column] and fits)
        row = new
    return row[columns]


def _elastic(pattern: Pattern) -> list[bool]:
    """For each token whether it is a one of a stretch of wildcards that ends in a run."""
    out: list[bool] = []
    run_behind = False
    for token in reversed(pattern):
        out.append(token == ANY_ONE and run_behind)
        run_behind = token == ANY_RUN or (token == ANY_ONE and run_behind)
    return out[::-1]


@lru_cache(maxsize=65536)
def intersects(one: Pattern, other: Pattern) -> bool:
    """Whether some string is accepted by both; exact."""
    columns = len(other)
    row = [True] + [False] * columns
    for column, token in enumerate(other):
        row[column + 1] = row[column] and token == ANY_RUN
    for left in one:
        new = [row[0] and left == ANY_RUN]
        for column, right in enumerate(other):
            if left == ANY_RUN or right == ANY_RUN:
                new.append(row[column + 1] or new[column])
            else:
                new.append(row[column] and (left == right or ANY_ONE in (left, right)))
        row = new
    return row[columns]
