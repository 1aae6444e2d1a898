"""Prints the map of modules, one line per module, from their docstrings; `make map` runs it."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]


def render(package: Path) -> str:
    """Draw a package as a nested list; each line is the first sentence of a docstring."""
    return "".join(_lines(package, depth=0))


def sentence(source: str) -> str:
    """Take the first sentence of a module's docstring, on one line."""
    docstring = ast.get_docstring(ast.parse(source)) or ""
    paragraph = " ".join(docstring.partition("\n\n")[0].split())
    return re.split(r"(?<=[.!?]) ", paragraph, maxsplit=1)[0]


def _lines(package: Path, *, depth: int) -> Iterator[str]:
    yield _line(f"{package.name}/", package / "__init__.py", depth)
    entries = sorted(package.iterdir(), key=lambda entry: (entry.is_dir(), entry.name))
    for entry in entries:
        if entry.suffix == ".py" and entry.name != "__init__.py":
            yield _line(entry.name, entry, depth + 1)
        elif (entry / "__init__.py").exists():
            yield from _lines(entry, depth=depth + 1)


def _line(name: str, module: Path, depth: int) -> str:
    return f"{'  ' * depth}- `{name}` {sentence(module.read_text())}\n"


if __name__ == "__main__":
    sys.stdout.write(render(ROOT / "app"))
