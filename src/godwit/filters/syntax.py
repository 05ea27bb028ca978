"""From the text of a filter to a syntax tree: sqlglot's tokenizer and parser, held to the sentences of this language.

sqlglot reads all of SQL and forgives much. `ROWS` is the whole grammar that we let through to it, so that only sound
sentences reach its parser, the tree has no node that we do not know, and every error names its column and what was
expected there. What remains to sqlglot is what it does well: words, quotes, and who binds tighter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NoReturn

import msgspec
from sqlglot import Dialect, Parser, Token, TokenError, Tokenizer, exp
from sqlglot import TokenType as T
from sqlglot.errors import SqlglotError

from godwit.events import NAME_MAX
from godwit.filters.errors import FilterError

RESERVED = frozenset({"AND", "OR", "NOT", "BETWEEN", "IN", "LIKE", "ESCAPE", "IS", "NULL", "TRUE", "FALSE"})
INFINITY = "INFINITY"
FUNCTIONS = ("within", "within_box", "startswith", "endswith", "contains", "rate")

NAME_RE = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
"""A name that needs no quotes, unless it is a word of the language."""

_QUOTED_OR_QUOTE = re.compile(r"""'(?:[^']|'')*+'|"(?:[^"]|"")*+"|`(?:[^`]|``)*+`|['"`]""")


class FilterSyntaxError(FilterError):
    """A filter text that cannot be read; `line` and `column` count from 1 and say where."""

    def __init__(self, problem: str, text: str, at: int) -> None:
        self.line = text.count("\n", 0, at) + 1
        self.column = at - text.rfind("\n", 0, at)
        where = f"line {self.line}, column {self.column}" if "\n" in text else f"column {self.column}"
        super().__init__(f"filter, {where}: {problem}")


class Limits(msgspec.Struct, frozen=True):
    """What the text of a filter may demand of its reader, since anybody may send one; beyond it is a `FilterError`.

    `alternatives` bounds the filters that AND over OR multiplies into, before they are made, and `effort` the pairs of
    attribute filters that must be compared while making them.
    """

    characters: int = 16_384
    depth: int = 32
    predicates: int = 256
    list_items: int = 1024
    pattern_characters: int = 256
    alternatives: int = 512
    effort: int = 100_000


DEFAULT = Limits()


class _Tokenizer(Tokenizer):
    SINGLE_TOKENS = {  # noqa: RUF012
        "(": T.L_PAREN,
        ")": T.R_PAREN,
        ",": T.COMMA,
        "-": T.DASH,
        "+": T.PLUS,
        "=": T.EQ,
        "<": T.LT,
        ">": T.GT,
        "!": T.EXCLAMATION,
        "'": T.UNKNOWN,
        '"': T.UNKNOWN,
        "`": T.UNKNOWN,
    }
    KEYWORDS = {"<=": T.LTE, ">=": T.GTE, "<>": T.NEQ, "!=": T.NEQ} | {word: T[word] for word in RESERVED}
    IDENTIFIERS = ['"', "`"]  # noqa: RUF012
    COMMENTS = []  # noqa: RUF012
    COMMANDS = set()  # noqa: RUF012


class _Parser(Parser):
    # Ours are none of SQL's: without this, CONTAINS and its kin would become nodes with argument names of their own.
    FUNCTIONS = {}  # noqa: RUF012


_DIALECT = Dialect()

# The words of the grammar, as an error names them.
NAME, CALL, NUMBER, LENGTH, TEXT = "an attribute", "a function", "a number", "a length", "a text in 'quotes'"
TRUTH, COMPARISON, OPEN, CLOSE, COMMA, END = "TRUE or FALSE", "a comparison", "'('", "')'", "','", "the end"

_WORD_OF = (
    {T.IDENTIFIER: NAME, T.STRING: TEXT, T.NUMBER: NUMBER, T.TRUE: TRUTH, T.FALSE: TRUTH}
    | dict.fromkeys((T.EQ, T.NEQ, T.LT, T.LTE, T.GT, T.GTE), COMPARISON)
    | {T.L_PAREN: OPEN, T.R_PAREN: CLOSE, T.COMMA: COMMA}
    | {T[word]: word for word in RESERVED - {"TRUE", "FALSE"}}
)

_THEN = {"AND": "condition", "OR": "condition", CLOSE: "then", END: "then"}

ROWS: dict[str, dict[str, str]] = {
    "condition": {NAME: "name", CALL: "call", NUMBER: "left", TEXT: "left", TRUTH: "truth", "NOT": "condition"}
    | {OPEN: "condition"},
    "name": {COMPARISON: "right", "IS": "is", "NOT": "not", "IN": "in", "LIKE": "like", "BETWEEN": "between"} | _THEN,
    "right": {NAME: "then", NUMBER: "then", TEXT: "then", TRUTH: "then"},
    "left": {COMPARISON: "attribute"},
    "truth": {COMPARISON: "attribute"} | _THEN,
    "attribute": {NAME: "then"},
    "not": {"IN": "in", "LIKE": "like", "BETWEEN": "between"},
    "is": {"NULL": "then", "NOT": "is not"},
    "is not": {"NULL": "then"},
    "in": {OPEN: "item"},
    "item": {NUMBER: "items", TEXT: "items", TRUTH: "items"},
    "items": {COMMA: "item", CLOSE: "then"},
    "like": {TEXT: "pattern"},
    "pattern": {"ESCAPE": "escape"} | _THEN,
    "escape": {TEXT: "then"},
    "between": {NUMBER: "low"},
    "low": {"AND": "high"},
    "high": {NUMBER: "then"},
    "call": {OPEN: "argument"},
    "argument": {NAME: "arguments", NUMBER: "arguments", LENGTH: "arguments", TEXT: "arguments"},
    "arguments": {COMMA: "argument", CLOSE: "then"},
    "then": _THEN,
}
"""For each place in a sentence the words that may come next, and the place to which each leads."""


def tree(text: str, limits: Limits) -> exp.Expr:
    """The syntax tree of a condition, made of connectives and of the predicates in `ROWS` only."""
    if len(text) > limits.characters:
        raise FilterError(f"filter: {len(text)} characters are too many, at most {limits.characters} may be sent")
    words = list(_words(text))
    _check(text, words, limits)
    tokens = [token for _, token in words]
    try:
        condition = _Parser(dialect=_DIALECT).parse_into(exp.Condition, tokens, text)[0]
    except SqlglotError as error:
        raise FilterError("filter: not a condition") from error
    assert condition is not None
    return condition


def start(node: exp.Expr) -> int:
    """Where in the text a node begins, as far as sqlglot remembers."""
    return min((n.meta["start"] for n in node.walk() if "start" in n.meta), default=0)


def _words(text: str) -> Iterator[tuple[str, Token]]:
    """The words of the text, each with its token: signs belong to their numbers, and units too."""
    tokens = _tokens(text)
    at = 0
    while at < len(tokens):
        token = tokens[at]
        behind = tokens[at + 1] if at + 1 < len(tokens) else None
        at += 1
        if token.token_type in (T.DASH, T.PLUS) and behind is not None and _is_number(behind):
            at += 1
            sign = "-" if token.token_type is T.DASH else ""
            token = Token(T.NUMBER, sign + behind.text, start=token.start, end=behind.end)
            behind = tokens[at] if at < len(tokens) else None
        if token.token_type is T.VAR:
            yield _name_or_call(text, token, behind)
        elif token.token_type is T.NUMBER and behind is not None and _is_unit(token, behind):
            at += 1
            yield LENGTH, Token(T.NUMBER, token.text + behind.text, start=token.start, end=behind.end)
        elif token.token_type in _WORD_OF:
            yield _WORD_OF[token.token_type], token
        else:
            raise FilterSyntaxError(f"unexpected {text[token.start : token.end + 1]!r}", text, token.start)


def _tokens(text: str) -> list[Token]:
    try:
        return _Tokenizer(dialect=_DIALECT).tokenize(text)
    except TokenError:
        open_quotes = (found for found in _QUOTED_OR_QUOTE.finditer(text) if len(found[0]) == 1)
        at = next((found.start() for found in open_quotes), 0)
        raise FilterSyntaxError(f"the quote {text[at]} opens here and never closes", text, at) from None


def _is_number(token: Token) -> bool:
    return token.token_type is T.NUMBER or (token.token_type is T.VAR and token.text.upper() == INFINITY)


def _is_unit(number: Token, behind: Token) -> bool:
    return behind.token_type is T.VAR and behind.start == number.end + 1 and behind.text.isalnum()


def _name_or_call(text: str, token: Token, behind: Token | None) -> tuple[str, Token]:
    if token.text.upper() == INFINITY:
        return NUMBER, Token(T.NUMBER, token.text, start=token.start, end=token.end)
    if not (plain := NAME_RE.match(token.text)) or plain.end() < len(token.text):
        bad = plain.end() if plain else 0
        raise FilterSyntaxError(
            f'unexpected {token.text[bad]!r}; a name with such characters is written in "quotes"',
            text,
            token.start + bad,
        )
    if behind is None or behind.token_type is not T.L_PAREN:
        # As a quoted identifier no name can be taken for one of the many words that sqlglot knows by their text.
        return NAME, Token(T.IDENTIFIER, token.text, start=token.start, end=token.end)
    if token.text.lower() not in FUNCTIONS:
        raise FilterSyntaxError(f"no function {token.text!r}; there are {', '.join(FUNCTIONS)}", text, token.start)
    return CALL, token


def _check(text: str, words: list[tuple[str, Token]], limits: Limits) -> None:
    """Raise unless the words are a sentence by `ROWS`, with parentheses that match, within the limits."""
    state, groups, depth = "condition", list[int](), 0
    predicates = items = 0
    for word, token in words:
        following = ROWS[state].get(word)
        if following is None or (state in _CLOSING and word == CLOSE and not groups):
            _refuse(text, state, token, bool(groups))
        if word == NAME:
            _check_name(text, token)
        if state == "condition":
            if word in ("NOT", OPEN):
                depth += 1
                _bound(text, token, "levels of nesting", depth, limits.depth)
                if word == OPEN:
                    groups.append(depth)
            else:
                predicates += 1
                _bound(text, token, "predicates", predicates, limits.predicates)
        elif state in _CLOSING and word == CLOSE:
            groups.pop()
        elif following == "condition":
            depth = groups[-1] if groups else 0
        elif state == "item":
            items += 1
            _bound(text, token, "items of a list", items, limits.list_items)
        elif state == "in":
            items = 0
        state = following
    if END not in ROWS[state] or groups:
        _refuse(text, state, None, bool(groups))


_CLOSING = frozenset(state for state, row in ROWS.items() if row.items() >= _THEN.items())
"""The places where a ')' closes a group and not a list."""


def _bound(text: str, token: Token, what: str, count: int, limit: int) -> None:
    if count > limit:
        raise FilterSyntaxError(f"more than {limit} {what}", text, token.start)


def _check_name(text: str, token: Token) -> None:
    if not 0 < len(token.text) <= NAME_MAX:
        raise FilterSyntaxError(f"an attribute's name has 1 to {NAME_MAX} characters", text, token.start)


def _refuse(text: str, state: str, token: Token | None, grouped: bool) -> NoReturn:
    expected = [word for word in ROWS[state] if state not in _CLOSING or word != (END if grouped else CLOSE)]
    *most, last = expected
    listed = f"{', '.join(most)} or {last}" if most else last
    found = END if token is None else text[token.start : token.end + 1]
    hint = "; a missing attribute is found by IS NULL" if found.upper() == "NULL" else ""
    raise FilterSyntaxError(
        f"expected {listed}, found {found if token is None else repr(found)}{hint}",
        text,
        len(text) if token is None else token.start,
    )
