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
    """The plainest (operator, operand) that accepts what the LIKE text accepts; ('exists', '') where that is all."""
    pattern = parse(like)
    inner = pattern
    front = bool(inner) and inner[0] == ANY_RUN
    back = bool(inner) and inner[-1] == ANY_RUN
    if pattern == (ANY_RUN,):
        return "exists", ""
    inner = inner[front : len(inner) - back]
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
    """Whether `wide` accepts all that `narrow` accepts, by matching `narrow`'s own symbols; never wrongly True."""
    columns = len(narrow)
    row = [True] + [False] * columns
    for token in wide:
        if token == ANY_RUN:
            new = [row[0]]
            for column in range(1, columns + 1):
                new.append(row[column] or new[column - 1])
        else:
            new = [False]
            for column, symbol in enumerate(narrow):
                fits = symbol == token or (token == ANY_ONE and symbol != ANY_RUN)
                new.append(row[column] and fits)
        row = new
    return row[columns]


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
