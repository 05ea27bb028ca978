"""Long sentences are found wherever they stand, and nothing else is taken for one."""

from __future__ import annotations

import pytest
from tools import english

LONG = " ".join(["word"] * 41)


@pytest.mark.parametrize(
    "text",
    [
        f"{LONG}.",
        f"Short. {LONG}. Short.",
        f"- item\n- {LONG}\n",
        f"| a | b |\n|---|---|\n| c | {LONG} |",
        f"[{LONG}](there)",
        "\n".join(["word"] * 41),
    ],
)
def test_a_sentence_of_41_words_is_found(text: str) -> None:
    assert [words for words, _ in english.long_sentences(text)] == [41]


@pytest.mark.parametrize(
    "text",
    [
        " ".join(["word"] * 40),
        f"```sh\n{LONG}\n```",
        f"Text.\n\n    {LONG}\n\nText.",
        f"`{LONG}` is one word.",
        f"<!-- {LONG} -->",
        "- an item of some words\n" * 20,
        "| a cell of a table |\n" * 20,
        "name     what it is\n" * 20,
        "Four words end here. " * 20,
    ],
)
def test_code_and_what_is_no_sentence_is_left_alone(text: str) -> None:
    assert list(english.long_sentences(text)) == []


def test_docstrings_of_everything_are_looked_at() -> None:
    source = 'A = 1\n"""of a name"""\nclass B:\n    """of a class"""\n    def c(self):\n        """of a method"""\n'
    assert sorted(english.docstrings(source)) == [(2, "of a name"), (4, "of a class"), (6, "of a method")]
