"""Finds the sentences for people in the source of a module."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

WORD = re.compile(r"(?<![\w{/.-])[A-Za-z][a-z']+(?![\w}/(=*-])")
QUERY = re.compile(r"\s*(query|mutation) \(")
"""How a document of GraphQL begins."""
NOT_FOR_PEOPLE = {
    "IdForm",
    "Tasks",
    "compile",
    "debug",
    "info",
    "warning",
    "error",
    "log",
    "exception",
    "read_pages",
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
    """Tell docstrings, logs, and errors, which are a surface of their own, and codes."""
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in NOT_FOR_PEOPLE
        case ast.Raise() | ast.Assert() | ast.Compare() | ast.Expr(value=ast.Constant()):
            return True
    return False


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) or "{}" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _is_sentence(text: str) -> bool:
    """Tell three words in a row, or a label of two, from codes, keys, patterns and queries."""
    words = WORD.findall(text)
    is_label = len(words) == 2 and words[0][0].isupper()
    is_code = "\\" in text or QUERY.match(text) is not None
    return " " in text.strip() and not is_code and (len(words) >= 3 or is_label)
