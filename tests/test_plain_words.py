"""Messages and docstrings say it as git and gh would: words that are kept out."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

import uwfgit

_ROOT: Final = Path(uwfgit.__file__).parent
_WORDS: Final = {
    "mend": r"\bmend(?:ed|ing|s)?\b",
    "anew": r"\banew\b",
    "somebody": r"\bsomebody\b",
    "the way on": r"\bthe way on\b",
    "X is no Y": r"(?<!there )(?<!There )\bis no (?!longer|more|way|one|such)[a-z]",
    "no command of": r"\bis no command\b",
}
"""What stands for them: fix, again, someone, how to go on, is not a."""
_FIRST: Final = re.compile(r"(?:Tell whether|Give (?:the|a|an) \w+ of)\b")


@cache
def _texts() -> tuple[tuple[str, str, bool], ...]:
    """Return each text of the package: where, what, and whether it is a docstring."""
    return tuple(_iter_texts())


def _iter_texts() -> Iterator[tuple[str, str, bool]]:
    for path in sorted(_ROOT.rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        docs = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(
                node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
            )
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                where = f"{path.relative_to(_ROOT)}:{node.lineno}"
                yield where, node.value, id(node) in docs


@pytest.mark.parametrize("word", _WORDS)
def test_no_message_has_a_word_that_nobody_would_write(word: str) -> None:
    found = [
        f"{where}: {text}"
        for where, text, is_doc in _texts()
        # A word alone is a key or a name.
        if not is_doc and " " in text and re.search(_WORDS[word], text)
    ]

    assert found == []


def test_docstrings_say_what_is_returned_and_whether() -> None:
    found = [
        f"{where}: {text.splitlines()[0]}"
        for where, text, is_doc in _texts()
        if is_doc and text.strip() and _FIRST.match(text)
    ]

    assert found == []
