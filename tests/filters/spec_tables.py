"""The operator tables of the content-routing spec, written out as they are printed there.

A cell is the condition under which the row's predicate stands in the relation to the column's, as a function of the
operands of the row and then of the column; a cell that is not there means never.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

from godwit.filters.predicates import (
    EXISTS,
    AnyPredicate,
    contains,
    end,
    equ,
    gr,
    gre,
    lacks,
    lt,
    lte,
    neq,
    rng,
    stw,
)

Condition = Callable[..., bool]
Maker = Callable[..., AnyPredicate]
Table = dict[str, dict[str, Condition]]
Operands = tuple[int | str, ...]

NUMBER_MAKERS: dict[str, Maker] = {
    "Equ": equ,
    "Neq": neq,
    "Gr": gr,
    "Lt": lt,
    "Gre": gre,
    "Lte": lte,
    "Rng": rng,
    "Exists": lambda: EXISTS,
}

STRING_MAKERS: dict[str, Maker] = {
    "Equ": equ,
    "Neq": neq,
    "In": contains,
    "Nin": lacks,
    "Stw": stw,
    "End": end,
    "Exists": lambda: EXISTS,
}

NUMBER_OPERANDS = [*product(range(5))]
STRING_OPERANDS = [("".join(letters),) for length in (1, 2, 3) for letters in product("ab", repeat=length)]


def number_operands(operator: str) -> list[Operands]:
    """All of them between 0 and 4; a range of one number is an equality by canonical form (spec 1.5.1 a)."""
    if operator == "Rng":
        return [(low, high) for low, high in product(range(5), repeat=2) if low < high]
    return [()] if operator == "Exists" else list(NUMBER_OPERANDS)


def string_operands(operator: str) -> list[Operands]:
    """All strings of one to three letters out of two."""
    return [()] if operator == "Exists" else list(STRING_OPERANDS)


def number_instances() -> Iterator[tuple[str, Operands, AnyPredicate]]:
    for operator, make in NUMBER_MAKERS.items():
        for operands in number_operands(operator):
            yield operator, operands, make(*operands)


def string_instances() -> Iterator[tuple[str, Operands, AnyPredicate]]:
    for operator, make in STRING_MAKERS.items():
        for operands in string_operands(operator):
            yield operator, operands, make(*operands)


def always(*operands: int | str) -> bool:
    return True


# Spec 1.5.1.
NUMBER_COVERING: Table = {
    "Equ": {"Equ": lambda a, b: a == b},
    "Neq": {
        "Equ": lambda a, b: a != b,
        "Neq": lambda a, b: a == b,
        "Gr": lambda a, b: a <= b,
        "Lt": lambda a, b: a >= b,
        "Gre": lambda a, b: a < b,
        "Lte": lambda a, b: a > b,
        "Rng": lambda a, x, y: not x <= a <= y,
    },
    "Gr": {
        "Equ": lambda a, b: a < b,
        "Gr": lambda a, b: a <= b,
        "Gre": lambda a, b: a < b,
        "Rng": lambda a, x, y: a < x,
    },
    "Lt": {
        "Equ": lambda a, b: a > b,
        "Lt": lambda a, b: a >= b,
        "Lte": lambda a, b: a > b,
        "Rng": lambda a, x, y: a > y,
    },
    "Gre": {
        "Equ": lambda a, b: a <= b,
        "Gr": lambda a, b: a <= b,
        "Gre": lambda a, b: a <= b,
        "Rng": lambda a, x, y: a <= x,
    },
    "Lte": {
        "Equ": lambda a, b: a >= b,
        "Lt": lambda a, b: a >= b,
        "Lte": lambda a, b: a >= b,
        "Rng": lambda a, x, y: a >= y,
    },
    "Rng": {
        "Equ": lambda x, y, b: x <= b <= y,
        "Rng": lambda x, y, u, v: u >= x and v <= y,
    },
    "Exists": dict.fromkeys(NUMBER_MAKERS, always),
}

# Spec 1.5.2 with the four unsound cells off.
STRING_COVERING: Table = {
    "Equ": {"Equ": lambda a, b: b == a},
    "Neq": {
        "Equ": lambda a, b: b != a,
        "Neq": lambda a, b: b == a,
        "In": lambda a, b: b not in a,
        "Nin": lambda a, b: b in a,
        "Stw": lambda a, b: not a.startswith(b),
        "End": lambda a, b: not a.endswith(b),
    },
    "In": {
        "Equ": lambda a, b: a in b,
        "In": lambda a, b: a in b,
        "Stw": lambda a, b: a in b,
        "End": lambda a, b: a in b,
    },
    "Nin": {
        "Equ": lambda a, b: a not in b,
        "Nin": lambda a, b: b in a,
    },
    "Stw": {
        "Equ": lambda a, b: b.startswith(a),
        "Stw": lambda a, b: b.startswith(a),
    },
    "End": {
        "Equ": lambda a, b: b.endswith(a),
        "End": lambda a, b: b.endswith(a),
    },
    "Exists": dict.fromkeys(STRING_MAKERS, always),
}

# Spec 1.5.2, the cells marked [!]: the published conditions for Nin over the column, each of which loses events.
UNSOUND_NIN: dict[str, Condition] = {
    "Neq": lambda a, b: b in a,
    "In": lambda a, b: a not in b,
    "Stw": lambda a, b: a not in b,
    "End": lambda a, b: a not in b,
}

# Spec 1.6. Each pair stands once; overlap is symmetric.
NUMBER_OVERLAP: Table = {
    "Equ": {
        "Equ": lambda a, b: a == b,
        "Neq": lambda a, b: a != b,
        "Gr": lambda a, b: a > b,
        "Gre": lambda a, b: a >= b,
        "Lt": lambda a, b: a < b,
        "Lte": lambda a, b: a <= b,
        "Rng": lambda a, x, y: x <= a <= y,
    },
    "Neq": {
        "Rng": lambda a, x, y: not x == y == a,
        "Neq": always,
        "Gr": always,
        "Gre": always,
        "Lt": always,
        "Lte": always,
    },
    "Gr": {
        "Gr": always,
        "Gre": always,
        "Lt": lambda a, b: a < b,
        "Lte": lambda a, b: a < b,
        "Rng": lambda a, x, y: y > a,
    },
    "Gre": {
        "Gre": always,
        "Lt": lambda a, b: a < b,
        "Lte": lambda a, b: a <= b,
        "Rng": lambda a, x, y: y >= a,
    },
    "Lt": {"Lt": always, "Lte": always, "Rng": lambda a, x, y: x < a},
    "Lte": {"Lte": always, "Rng": lambda a, x, y: x <= a},
    "Rng": {"Rng": lambda x, y, u, v: max(x, u) <= min(y, v)},
    "Exists": dict.fromkeys(NUMBER_MAKERS, always),
}

STRING_OVERLAP: Table = {
    "Equ": {
        "Equ": lambda a, b: a == b,
        "Neq": lambda a, b: a != b,
        "In": lambda a, b: b in a,
        "Nin": lambda a, b: b not in a,
        "Stw": lambda a, b: a.startswith(b),
        "End": lambda a, b: a.endswith(b),
    },
    "Neq": {"Neq": always, "In": always, "Nin": always, "Stw": always, "End": always},
    "In": {"In": always, "Stw": always, "End": always, "Nin": lambda a, b: b not in a},
    "Nin": {"Nin": always, "Stw": lambda a, b: a not in b, "End": lambda a, b: a not in b},
    "Stw": {"Stw": lambda a, b: a.startswith(b) or b.startswith(a), "End": always},
    "End": {"End": lambda a, b: a.endswith(b) or b.endswith(a)},
    "Exists": dict.fromkeys(STRING_MAKERS, always),
}

# Spec 2.10.1, table A.2: (first, second, condition on the operands of both); the union is Exists.
EXISTENCE_RULES: list[tuple[str, str, Condition]] = [
    ("Equ", "Neq", lambda a1, a2: a1 == a2),
    ("Neq", "Equ", lambda a1, a2: a1 == a2),
    ("Lt", "Gr", lambda a1, a2: a1 > a2),
    ("Lt", "Gre", lambda a1, a2: a1 >= a2),
    ("Lte", "Gr", lambda a1, a2: a1 >= a2),
    ("Lte", "Gre", lambda a1, a2: a1 >= a2),
    ("Gr", "Lt", lambda a1, a2: a1 < a2),
    ("Gr", "Lte", lambda a1, a2: a1 <= a2),
    ("Gre", "Lt", lambda a1, a2: a1 <= a2),
    ("Gre", "Lte", lambda a1, a2: a1 <= a2),
    ("Neq", "Neq", lambda a1, a2: a1 != a2),
    ("Neq", "Gr", lambda a1, a2: a1 > a2),
    ("Neq", "Gre", lambda a1, a2: a1 >= a2),
    ("Neq", "Lte", lambda a1, a2: a1 <= a2),
    ("Neq", "Lt", lambda a1, a2: a1 < a2),
    ("Gr", "Neq", lambda a1, a2: a1 < a2),
    ("Gre", "Neq", lambda a1, a2: a1 <= a2),
    ("Lt", "Neq", lambda a1, a2: a1 > a2),
    ("Lte", "Neq", lambda a1, a2: a1 >= a2),
    ("Neq", "Rng", lambda a1, a, b: a <= a1 <= b),
    ("Rng", "Neq", lambda a, b, a1: a <= a1 <= b),
]

# Spec 2.10.1, predicate modification: (first, second, condition, result), on dense numbers.
MODIFICATION_RULES: list[tuple[str, str, Condition, Maker]] = [
    ("Rng", "Rng", lambda a, b, c, d: max(a, c) <= min(b, d), lambda a, b, c, d: rng(min(a, c), max(b, d))),
    ("Rng", "Gr", lambda a, b, c: a <= c <= b, lambda a, b, c: gre(a)),
    ("Rng", "Gre", lambda a, b, c: a <= c <= b, lambda a, b, c: gre(a)),
    ("Rng", "Lt", lambda a, b, c: a <= c <= b, lambda a, b, c: lte(b)),
    ("Rng", "Lte", lambda a, b, c: a <= c <= b, lambda a, b, c: lte(b)),
    ("Equ", "Gr", lambda a, b: a == b, lambda a, b: gre(a)),
    ("Equ", "Lt", lambda a, b: a == b, lambda a, b: lte(a)),
    ("Lt", "Gr", lambda a, b: a == b, lambda a, b: neq(a)),
]

# The same for attributes that hold whole numbers only.
INTEGER_RULES: list[tuple[str, str, Condition, Maker]] = [
    ("Rng", "Rng", lambda a, b, c, d: b + 1 == c, lambda a, b, c, d: rng(a, d)),
    ("Rng", "Equ", lambda a, b, c: c in (a - 1, b + 1), lambda a, b, c: rng(min(a, c), max(b, c))),
]

# The same for strings; the result is Exists.
STRING_RULES: list[tuple[str, str, Condition]] = [
    *(
        ("Neq", operator, condition)
        for operator, condition in [
            ("Equ", lambda a, b: a == b),
            ("In", lambda a, b: b in a),
            ("Nin", lambda a, b: b not in a),
            ("Stw", lambda a, b: a.startswith(b)),
            ("End", lambda a, b: a.endswith(b)),
        ]
    ),
    ("Neq", "Neq", lambda a, b: a != b),
    ("In", "Nin", lambda a, b: a == b),
]
