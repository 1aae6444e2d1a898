"""The page about tools lists every tool, with its capability."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs" / "tools.md").read_text()
NAME = re.compile(r"`([a-z_.]+)`")


def made() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Find where the modules of tools make one: its name and its capabilities."""
    for path in [*ROOT.glob("app/core/tools/*.py"), *ROOT.glob("app/features/*/*.py")]:
        known = vars(import_module(".".join(path.relative_to(ROOT).with_suffix("").parts)))
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Tool":
                yield value(call.args[0], known), value(call.args[3], known)


def value(node: ast.expr, known: dict[str, Any]) -> Any:
    """Return what an argument is: written out, or the name of a constant."""
    return known[node.id] if isinstance(node, ast.Name) else ast.literal_eval(node)


def test_the_page_lists_every_tool_with_its_capability() -> None:
    rows = [line.split("|") for line in PAGE.splitlines() if line.startswith("| `")]
    listed = {
        name: tuple(NAME.findall(cells[3]))
        for cells in rows
        if len(cells) == 5
        for name in NAME.findall(cells[1])
    }

    assert listed == dict(made())
