"""Writes down every command of the command line with its help, so that a test can compare.

Run as `python -m tests.support.command_help`. The order of commands in a list does not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from typer.testing import CliRunner

from app.cli.application import app

KEPT = Path(__file__).parents[1] / "golden" / "commands.txt"
WIDTH = {"COLUMNS": "100", "TERMINAL_WIDTH": "100"}


def render() -> str:
    """Show the help of every command, with the lists of commands in alphabetical order."""
    return "".join(f"$ {' '.join(('agent-bridge', *path))}\n{text}\n" for path, text in _walk(()))


def _walk(path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    shown = CliRunner().invoke(app, [*path, "--help"], env=WIDTH)
    assert shown.exit_code == 0, shown.output
    head, mark, rest = shown.output.partition("Commands:\n")
    listed, blank, tail = rest.partition("\n\n")
    lines = sorted(listed.splitlines())
    yield path, "\n".join((head + mark + "\n".join(lines) + blank + tail).splitlines()) + "\n"
    for line in lines:
        if found := re.match(r"  (\S+)  ", line):
            yield from _walk((*path, found[1]))


if __name__ == "__main__":
    KEPT.write_text(render())
