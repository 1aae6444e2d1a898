"""Sentences for people live in wording modules; the rest of core carries codes and facts."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import app.core

CORE = Path(next(iter(app.core.__path__)))
FOR_AGENTS = {"turns/prompt.py", "turns/place_context.py", "turns/standing.py"}
"""Text for agents, which is another surface."""
WORD = re.compile(r"(?<![\w{/.-])[A-Za-z][a-z']+(?![\w}/(=*-])")
NOT_FOR_PEOPLE = {
    "Tasks",
    "compile",
    "debug",
    "info",
    "warning",
    "error",
    "log",
    "exception",
    "start",
}
"""Calls whose text is a task's name, a pattern or a line of the log."""


def list_sentences(source: str) -> Iterator[tuple[int, str]]:
    """List the texts of a module that read like something said to people."""
    tree = ast.parse(source)
    apart = {id(node) for each in ast.walk(tree) if _is_apart(each) for node in ast.walk(each)}
    for node in ast.walk(tree):
        if id(node) not in apart and (text := _text(node)) and _is_sentence(text):
            apart |= {id(part) for part in ast.walk(node)}
            yield node.lineno, text  # type: ignore[attr-defined]  # every text has a line


def _is_apart(node: ast.AST) -> bool:
    """Tell docstrings, logs, and errors, which are a surface of their own."""
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in NOT_FOR_PEOPLE
        case ast.Raise() | ast.Assert() | ast.Expr(value=ast.Constant()):
            return True
    return False


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) or "{}" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _is_sentence(text: str) -> bool:
    """Tell three words in a row, or a label of two, from codes, keys and patterns."""
    words = WORD.findall(text)
    is_label = len(words) == 2 and words[0][0].isupper()
    return " " in text.strip() and "\\" not in text and (len(words) >= 3 or is_label)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=str(path.relative_to(CORE)))
        for path in sorted(CORE.rglob("*.py"))
        if path.name != "wording.py" and str(path.relative_to(CORE)) not in FOR_AGENTS
    ],
)
def test_no_sentence_for_people_is_written_outside_of_wording(path: Path) -> None:
    assert list(list_sentences(path.read_text())) == []


@pytest.mark.parametrize(
    "source",
    [
        'def f(name): return f"{name} was not sent."',
        'WHY = "the time has passed"',
        'options = (AskOption(ALLOW, "Allow once", "allow_once"),)',
        'words = "It cannot be read." if broken else ""',
    ],
)
def test_a_sentence_is_found(source: str) -> None:
    assert len(list(list_sentences(source))) == 1


@pytest.mark.parametrize(
    "source",
    [
        '"""A docstring of a module."""',
        'raise Conflict(f"{name} is not there. Choose another one.")',
        'logger.info("no list of repositories for %s", agent)',
        'Effect("hand over", session.id)',
        'note = f"updates:{turn}"',
    ],
)
def test_codes_logs_and_errors_are_no_sentences(source: str) -> None:
    assert list(list_sentences(source)) == []
