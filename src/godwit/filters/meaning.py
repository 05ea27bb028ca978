"""From the syntax tree of a filter to its alternatives: NOT pushed down to the predicates, AND distributed over OR.

Conditions are three-valued as SQL's are: where an attribute is missing, of another kind or NaN, a predicate is unknown,
and so is its negation. Once NOT stands at the predicates alone, where `clauses.complement` takes it up, unknown and
false need no longer be told apart.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise
from typing import TypeVar

from sqlglot import exp

from godwit.events import INT_MAX, INT_MIN
from godwit.filters import clauses, predicates
from godwit.filters.areas import WORLD, Area, Box, Circle
from godwit.filters.canonical import merged
from godwit.filters.clauses import AttributeFilter, Clause
from godwit.filters.errors import FilterError
from godwit.filters.filters import EVERYTHING, Filter, attribute, conjunction
from godwit.filters.patterns import ESCAPE
from godwit.filters.predicates import (
    ABOVE_ALL,
    ABSENT,
    BELOW_ALL,
    EXISTS,
    AnyPredicate,
    Cut,
    Flag,
    Interval,
    Kind,
    Number,
    Rate,
    Versus,
    VersusOp,
    Within,
)
from godwit.filters.syntax import INFINITY, FilterSyntaxError, Limits, start

Wish = tuple[str, Kind, AnyPredicate]
"""What one predicate of the text asks of one attribute."""

_METRES = {"m": 1, "km": 1000}
_LENGTH = re.compile("(.+?)(km|m)", re.IGNORECASE)

R = TypeVar("R")

_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.EQ,
    exp.NEQ: exp.NEQ,
    exp.LT: exp.GT,
    exp.GT: exp.LT,
    exp.LTE: exp.GTE,
    exp.GTE: exp.LTE,
}

_AGAINST_NUMBER: dict[type[exp.Expr], Callable[[Number], AnyPredicate]] = {
    exp.EQ: predicates.equ,
    exp.NEQ: predicates.neq,
    exp.LT: predicates.lt,
    exp.GT: predicates.gr,
    exp.LTE: predicates.lte,
    exp.GTE: predicates.gre,
}

_AGAINST_ATTRIBUTE: dict[type[exp.Expr], tuple[VersusOp, Kind]] = {
    exp.EQ: (VersusOp.EQU, Kind.ANY),
    exp.NEQ: (VersusOp.NEQ, Kind.ANY),
    exp.LT: (VersusOp.LT, Kind.NUMBER),
    exp.GT: (VersusOp.GR, Kind.NUMBER),
    exp.LTE: (VersusOp.LTE, Kind.NUMBER),
    exp.GTE: (VersusOp.GRE, Kind.NUMBER),
}

_IN_TEXT: dict[str, tuple[Callable[[str], AnyPredicate], VersusOp]] = {
    "startswith": (predicates.stw, VersusOp.STW),
    "endswith": (predicates.end, VersusOp.END),
    "contains": (predicates.contains, VersusOp.IN),
}


class Reader:
    """Reads the tree of one text; what that may cost is counted over all of it."""

    def __init__(self, text: str, limits: Limits) -> None:
        self.text = text
        self.limits = limits
        self.effort = 0
        self.pattern_characters = 0

    def alternatives(self, node: exp.Expr, negated: bool = False) -> list[Filter]:
        """Filters of which at least one holds exactly where the condition, or else its negation, is true."""
        match node:
            case exp.Paren():
                return self.alternatives(node.this, negated)
            case exp.Not():
                return self.alternatives(node.this, not negated)
            case exp.And() | exp.Or():
                parts = [self.alternatives(part, negated) for part in _operands(node)]
                together = isinstance(node, exp.And) is not negated
                return self._all_of(node, parts) if together else self._any_of(node, parts)
            case exp.Boolean():
                return [EVERYTHING] if node.this is not negated else []
        unescaped = node.this if isinstance(node, exp.Escape) else node
        return self._predicate(node, negated is not bool(unescaped.args.get("negate")))

    def _any_of(self, node: exp.Expr, parts: list[list[Filter]]) -> list[Filter]:
        found = merged(one for part in parts for one in part)
        self._spend(node, len(found))
        self._few(node, len(found))
        return found

    def _all_of(self, node: exp.Expr, parts: list[list[Filter]]) -> list[Filter]:
        if not all(parts):
            return []
        certain = self._joined(node, [own for part in parts if len(part) == 1 for own in part[0]])
        found = [certain] if certain is not None else []
        for part in sorted((part for part in parts if len(part) > 1), key=len):
            self._few(node, len(found) * len(part))
            products = (self._joined(node, [*one, *other]) for one in found for other in part)
            found = merged(product for product in products if product is not None)
        return found

    def _joined(self, node: exp.Expr, attributes: list[AttributeFilter]) -> Filter | None:
        lengths: Counter[object] = Counter()
        pairs = 0
        for own in attributes:
            pairs += 1 + lengths[own.key] * len(own.clause)
            lengths[own.key] += len(own.clause)
        self._spend(node, pairs)
        return conjunction(attributes)

    def _few(self, node: exp.Expr, alternatives: int) -> None:
        if alternatives > self.limits.alternatives:
            raise self._error(
                node, f"{alternatives} alternatives once AND stands below OR, at most {self.limits.alternatives} may be"
            )

    def _spend(self, node: exp.Expr, pairs: int) -> None:
        self.effort += pairs
        if self.effort > self.limits.effort:
            raise self._error(node, "too many conditions on the same attributes to be compared with each other")

    def _error(self, node: exp.Expr, problem: str) -> FilterSyntaxError:
        return FilterSyntaxError(problem, self.text, start(node))

    def _predicate(self, node: exp.Expr, negated: bool) -> list[Filter]:
        by_key: dict[tuple[str, Kind], list[AnyPredicate]] = {}
        for name, kind, wish in self._wishes(node):
            by_key.setdefault((name, kind), []).append(wish)
        if not negated:
            wanted = [attribute(name, *wishes, kind=kind) for (name, kind), wishes in by_key.items()]
            return self._any_of(node, [[Filter((own,)) for own in wanted if own.clause]])
        if ("", Kind.RATE) in by_key:
            raise self._error(
                node, "a rate is no property of an event: there is nothing that NOT rate(...) could match"
            )
        unwanted = [(key, clause) for key, wishes in by_key.items() for clause in _none_of(key[1], wishes)]
        opposite = self._joined(node, [AttributeFilter(*key, clause) for key, clause in unwanted])
        return [opposite] if opposite is not None else []

    def _wishes(self, node: exp.Expr) -> list[Wish]:
        """What the predicate asks for; where several, any of them will do."""
        match node:
            case exp.Column():
                return [(node.name, Kind.BOOL, Flag(True))]
            case exp.Is():
                return [(node.this.name, Kind.ANY, ABSENT)]
            case exp.In():
                return [self._against_literal(exp.EQ, node.this, item) for item in node.expressions]
            case exp.Between():
                return [self._between(node)]
            case exp.Like():
                return [self._like(node, ESCAPE)]
            case exp.Escape():
                return [self._like(node.this, self._escape(node.expression))]
            case exp.Anonymous():
                return [self._call(node)]
        if type(node) in _MIRRORED:
            return [self._comparison(node)]
        raise self._error(node, "not a condition of this language")

    def _comparison(self, node: exp.Expr) -> Wish:
        operator, left, right = type(node), node.this, node.expression
        if not isinstance(left, exp.Column):
            return self._against_literal(_MIRRORED[operator], right, left)
        if not isinstance(right, exp.Column):
            return self._against_literal(operator, left, right)
        if left.name > right.name:
            operator, left, right = _MIRRORED[operator], right, left
        op, kind = _AGAINST_ATTRIBUTE[operator]
        return left.name, kind, Versus(op, right.name)

    def _against_literal(self, operator: type[exp.Expr], column: exp.Expr, literal: exp.Expr) -> Wish:
        if isinstance(literal, exp.Literal) and not literal.is_string:
            return column.name, Kind.NUMBER, self._checked(literal, _AGAINST_NUMBER[operator], self._number(literal))
        kind, value = (Kind.BOOL, literal.this) if isinstance(literal, exp.Boolean) else (Kind.STRING, literal.this)
        if operator is exp.EQ:
            return column.name, kind, predicates.equ(value)
        if operator is exp.NEQ:
            return column.name, kind, predicates.neq(value)
        raise self._error(column, f"only numbers have an order; {literal.sql()} can be compared by = and <>")

    def _between(self, node: exp.Between) -> Wish:
        low, high = self._number(node.args["low"]), self._number(node.args["high"])
        return node.this.name, Kind.NUMBER, self._checked(node.args["low"], predicates.rng, low, high)

    def _like(self, node: exp.Expr, escape: str) -> Wish:
        literal = node.expression
        pattern: str = literal.this
        if len(pattern) > self.limits.pattern_characters:
            raise self._error(literal, f"a pattern of more than {self.limits.pattern_characters} characters")
        # Comparing two patterns costs the product of their lengths, some twenty steps of it as much as one pair.
        self.pattern_characters += len(pattern)
        self._spend(literal, len(pattern) * self.pattern_characters // 20)
        return node.this.name, Kind.STRING, predicates.like(self._escaped_by_backslash(literal, escape))

    def _escape(self, literal: exp.Expr) -> str:
        character: str = literal.this
        if len(character) != 1 or character in "%_":
            raise self._error(literal, "ESCAPE takes a single character that is neither % nor _")
        return character

    def _escaped_by_backslash(self, literal: exp.Expr, escape: str) -> str:
        out = []
        characters = iter(literal.this)
        for character in characters:
            if character == escape:
                character = next(characters, "")
                if not character or character not in ("%", "_", escape):
                    raise self._error(literal, f"{escape!r} escapes only %, _ and itself")
                out.append(ESCAPE if character in ("%", "_", ESCAPE) else "")
            elif character == ESCAPE:
                out.append(ESCAPE)
            out.append(character)
        return "".join(out)

    def _call(self, node: exp.Anonymous) -> Wish:
        name = node.name.lower()
        match name:
            case "within":
                lat, lon, *place, radius = self._arguments(node, "lat, lon, lat0, lon0, radius")
                return self._within(node, lat, lon, Circle, *map(self._degrees, place), self._metres(radius))
            case "within_box":
                lat, lon, *edges = self._arguments(node, "lat, lon, south, west, north, east")
                return self._within(node, lat, lon, Box, *map(self._degrees, edges))
            case "rate":
                (per_s,) = self._arguments(node, "per_second")
                return "", Kind.RATE, self._rate(per_s)
        make, op = _IN_TEXT[name]
        arguments = self._arguments(node, "attribute, text")
        column, operand = self._column(arguments[0]), arguments[1]
        if isinstance(operand, exp.Column):
            return column.name, Kind.STRING, Versus(op, operand.name)
        if not operand.is_string:
            raise self._error(operand, f"expected a text in 'quotes' or an attribute, found {operand.name!r}")
        return column.name, Kind.STRING, make(operand.this)

    def _arguments(self, node: exp.Anonymous, names: str) -> list[exp.Expr]:
        takes, got = names.count(",") + 1, len(node.expressions)
        if takes != got:
            plural = "" if takes == 1 else "s"
            raise self._error(node, f"{node.name!r} takes {takes} argument{plural}, got {got}: {node.name}({names})")
        return node.expressions

    def _within(
        self, node: exp.Expr, lat: exp.Expr, lon: exp.Expr, make: Callable[..., Area], *measures: float
    ) -> Wish:
        names = (self._column(lat).name, self._column(lon).name)
        if "," in "".join(names):
            raise self._error(node, "the name of a coordinate must not contain a comma")
        area = self._checked(node, make, *measures)
        return ",".join(names), Kind.PLACE, EXISTS if area.covers(WORLD) else Within(area)

    def _rate(self, literal: exp.Expr) -> Rate:
        per_s = float(self._number(literal))
        if not 0 < per_s < math.inf:
            raise self._error(literal, "a rate is a number of notifications per second, above 0")
        return Rate(per_s)

    def _column(self, node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            raise self._error(node, f"expected an attribute, found {node.name!r}")
        return node

    def _degrees(self, node: exp.Expr) -> float:
        return float(self._number(node))

    def _metres(self, node: exp.Expr) -> float:
        length = _LENGTH.fullmatch(node.name) if isinstance(node, exp.Literal) and not node.is_string else None
        if length is None:
            return self._degrees(node)
        try:
            return float(Decimal(length[1]) * _METRES[length[2].lower()])
        except ArithmeticError:
            raise self._error(node, f"{node.name!r} is not a length; write 500m or 5km") from None

    def _number(self, node: exp.Expr) -> Number:
        """The literal's value: whole numbers exactly, fractions and whatever has an exponent as the nearest float."""
        if not isinstance(node, exp.Literal) or node.is_string:
            raise self._error(node, f"expected a number, found {node.name!r}")
        written: str = node.this
        if written.upper().endswith(INFINITY):
            return -math.inf if written.startswith("-") else math.inf
        try:
            exact = Decimal(written)
        except ArithmeticError:
            raise self._error(node, f"{written!r} is not a number") from None
        if "E" not in written.upper() and INT_MIN <= exact <= INT_MAX and exact == exact.to_integral_value():
            return int(exact)
        value = float(exact)
        if math.isinf(value) or written.lstrip("-").isdigit():
            raise self._error(node, f"{written} does not fit 64 bits")
        if value == 0 != exact:
            raise self._error(node, f"{written} is closer to 0 than any 64-bit float")
        return value

    def _checked(self, node: exp.Expr, make: Callable[..., R], *arguments: float) -> R:
        try:
            return make(*arguments)
        except FilterError as error:
            raise self._error(node, str(error)) from None


def _operands(node: exp.Expr) -> list[exp.Expr]:
    """Those of a chain of one connective, left to right, parentheses inside it ignored; chains may be long."""
    found, waiting = [], [node]
    while waiting:
        part = waiting.pop()
        inner = part
        while isinstance(inner, exp.Paren):
            inner = inner.this
        if type(inner) is type(node):
            waiting += (inner.expression, inner.this)
        else:
            found.append(inner)
    return found


def _none_of(kind: Kind, wishes: list[AnyPredicate]) -> list[Clause]:
    """The clauses that a value of this kind satisfies, all of them, when it satisfies no wish."""
    if kind is not Kind.NUMBER or not all(isinstance(p, Interval) for p in wishes):
        return [clauses.complement(kind, p) for p in wishes]
    joined = clauses.union(kind, wishes)
    if joined == clauses.ALWAYS:
        return [clauses.NEVER]
    edges: list[Cut] = [cut for p in joined if isinstance(p, Interval) for cut in (p.lo, p.hi)]
    gaps = list(pairwise([BELOW_ALL, *edges, ABOVE_ALL]))[::2]
    return [clauses.union(kind, [Interval(lo, hi) for lo, hi in gaps])]
