"""Writes the table of docs/troubleshooting.md from the findings in the source of `doctor`.

`make findings` runs it. A test compares, so that the page cannot say less.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "troubleshooting.md"
BEGIN = "<!-- doctor: written by `make findings` -->\n"
END = "<!-- end of doctor -->\n"
SOURCES = (
    "app/features/doctor/machine.py",
    "app/agents/checks.py",
    "app/features/doctor/agents.py",
    "app/services/*/doctor.py",
)
FINDINGS = {"problem", "warning", "unmet"}
BLANK = "…"
UNKNOWN = "The line below it, after →, says what."
SHARED = ROOT / "app/services/service.py"
"""Words that several services use."""


def render() -> str:
    """Render one row for each thing that `doctor` can find wrong."""
    paths = [path for pattern in SOURCES for path in sorted(ROOT.glob(pattern))]
    found = dict.fromkeys(row for path in paths for row in rows(path))
    return "".join(["\n| I see | do |\n|---|---|\n", *found, "\n"])


def rows(path: Path) -> Iterator[str]:
    """Yield the rows of one module."""
    tree = ast.parse(path.read_text())
    area = {"doctor.py": path.parent.name, "checks.py": "agent"}.get(path.name, "")
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for call in sorted(calls, key=lambda each: each.lineno):
        if ast.unparse(call.func) in FINDINGS:
            known = _constants(SHARED.read_text()) | _constants(path.read_text(), call.lineno)
            what, reason, remedy = (_text(each, known) for each in call.args[:3])
            subject = area or what.strip(f"{BLANK}:") or "agent"
            if reason.strip(f"{BLANK} .:()"):
                advice = remedy if remedy.strip(f"{BLANK}. ") else UNKNOWN
                yield f"| {subject}: {_cell(reason)} | {_cell(advice)} |\n"


def insert(page: str, table: str) -> str:
    """Put the table between its marks."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}{table}{END}{rest.partition(END)[2]}"


def _constants(source: str, line: int | None = None) -> dict[str, ast.expr]:
    """Collect the values of names as a line sees them."""
    found: dict[str, ast.expr] = {}
    for node in sorted(_assignments(source), key=lambda each: each.lineno):
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if isinstance(target, ast.Name) and node.value and (line is None or node.lineno < line):
            found[target.id] = node.value
    return found


def _assignments(source: str) -> list[ast.Assign | ast.AnnAssign]:
    nodes = ast.walk(ast.parse(source))
    return [node for node in nodes if isinstance(node, ast.Assign | ast.AnnAssign)]


def _text(node: ast.expr, known: dict[str, ast.expr]) -> str:
    """Return the words of an expression, with blanks for what is known only when it runs."""
    match node:
        case ast.Constant(value=str(value)):
            return value
        case ast.JoinedStr(values=parts):
            return "".join(_text(part, known) for part in parts)
        case ast.FormattedValue(value=ast.Name(id=name)) if name.isupper():
            return _text(ast.Name(name), known)
        case ast.IfExp(body=body):
            return _text(body, known)
        case ast.Name(id=name) if name in known:
            rest = {other: value for other, value in known.items() if other != name}
            return _text(known[name], rest)
        case _:
            return BLANK


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(insert(PAGE.read_text(), render()))
