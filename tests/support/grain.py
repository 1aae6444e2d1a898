"""Measures the grain of the package: how large its modules are, and what is small or named twice.

Run as `python -m tests.support.grain [ROOT]`; ROOT is a checkout, this one unless it is named.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[2]
LONG = 400
"""Lines, of all kinds, beyond which a file is looked at again."""
_SILENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """One file of the package."""

    path: Path
    name: str
    source: str

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax."""
        return ast.parse(self.source)

    @cached_property
    def lines(self) -> int:
        """Count all lines."""
        return len(self.source.splitlines())

    @cached_property
    def code(self) -> int:
        """Count lines without imports, docstrings, comments and blanks."""
        spoken = set[int]()
        for token in tokenize.generate_tokens(io.StringIO(self.source).readline):
            if token.type not in _SILENT:
                spoken.update(range(token.start[0], token.end[0] + 1))
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import | ast.ImportFrom) or _is_docstring(node):
                assert isinstance(node, ast.stmt)
                spoken.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        return len(spoken)

    @cached_property
    def functions(self) -> list[_Function]:
        """List functions and methods, inner ones too."""
        return [node for node in ast.walk(self.tree) if isinstance(node, _Function)]

    def private_used_once(self) -> list[_Function]:
        """List private functions that this module names once, besides where they are made."""
        uses = Counter(
            node.id if isinstance(node, ast.Name) else node.attr
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Name | ast.Attribute)
        )
        return [each for each in self.functions if is_private(each.name) and uses[each.name] == 1]

    def classes(self) -> Iterator[ast.ClassDef]:
        """Yield the classes of the module itself."""
        return (node for node in self.tree.body if isinstance(node, ast.ClassDef))

    def imports(self, known: set[str]) -> set[str]:
        """Collect the modules of the package that this one imports, at its head or further down."""
        found = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                whole = {f"{node.module}.{alias.name}" for alias in node.names}
                found |= (whole & known) or {node.module}
        return found & known - {self.name}


def is_private(name: str) -> bool:
    """Tell whether a name is private; what Python calls by itself is not."""
    return name.startswith("_") and not name.endswith("__")


def read(root: Path) -> list[Module]:
    """Read every module of the package `app` of a checkout."""
    modules = []
    for path in sorted(root.glob("app/**/*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        modules.append(Module(path, name, path.read_text()))
    return modules


def one_importer(modules: list[Module]) -> list[str]:
    """List the modules, packages aside, that exactly one module of the package imports."""
    known = {module.name for module in modules}
    importers = Counter(name for module in modules for name in module.imports(known))
    return [each.name for each in files(modules) if importers[each.name] == 1]


def files(modules: Iterable[Module]) -> list[Module]:
    """Leave out the `__init__` of packages."""
    return [module for module in modules if module.path.name != "__init__.py"]


def names_used_twice(modules: list[Module]) -> dict[str, int]:
    """Count the public class names that more than one module defines."""
    names = Counter(made.name for each in modules for made in each.classes())
    return {name: n for name, n in names.items() if n > 1 and not is_private(name)}


def protocols(modules: list[Module]) -> list[str]:
    """List the classes that are Protocols themselves."""
    return [
        f"{module.name}.{made.name}"
        for module in modules
        for made in ast.walk(module.tree)
        if isinstance(made, ast.ClassDef)
        and any(ast.unparse(base).split("[")[0] == "Protocol" for base in made.bases)
    ]


def measure(root: Path) -> Iterator[tuple[str, str]]:
    """Yield each figure with its name."""
    modules = read(root)
    functions = sum(len(module.functions) for module in modules)
    once = sum(len(module.private_used_once()) for module in modules)
    folders = Counter(module.path.parent.relative_to(root).as_posix() for module in files(modules))
    folder, length = folders.most_common(1)[0]
    long = sorted((m.lines, m.path.relative_to(root).as_posix()) for m in modules if m.lines > LONG)
    twice = names_used_twice(modules)
    yield "modules", str(len(modules))
    yield "  without __init__", str(len(files(modules)))
    yield "lines", str(sum(module.lines for module in modules))
    yield "code lines", str(sum(module.code for module in modules))
    yield "median module, code lines", f"{median(each.code for each in files(modules)):g}"
    yield "modules with one importer", str(len(one_importer(modules)))
    yield "class names used twice or more", str(len(twice))
    yield "Protocols", str(len(protocols(modules)))
    yield "functions", str(functions)
    yield "  private and used once", f"{once} ({once / functions:.0%})"
    yield f"files over {LONG} lines", str(len(long))
    yield from ((f"  {path}", str(lines)) for lines, path in reversed(long))
    yield "longest folder", f"{length} ({folder})"


def _is_docstring(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


if __name__ == "__main__":
    for name, figure in measure(Path(sys.argv[1]) if sys.argv[1:] else ROOT):
        print(f"{name:<48} {figure}")  # noqa: T201 - what it is for
