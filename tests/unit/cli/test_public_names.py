"""Every command, option and help text is the one that people know."""

from __future__ import annotations

from collections import defaultdict
from importlib import import_module

from typer.main import get_group

from app.cli.application import modules
from tests.support.command_help import KEPT, render


def test_every_command_is_as_it_is_written_down() -> None:
    assert render() == KEPT.read_text(), "if meant so: python -m tests.support.command_help"


def test_the_lines_that_stand_for_commands_are_those_of_the_commands() -> None:
    lines: dict[str, str] = defaultdict(str)
    found: dict[str, str] = defaultdict(str)
    for module, given in modules().items():
        commands = get_group(import_module(module).COMMANDS).commands
        assert set(commands) == set(given), module
        for name, command in commands.items():
            lines[name] += given[name]
            found[name] += (command.help or "").split("\n")[0]

    assert found == lines
