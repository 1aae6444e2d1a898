"""Every command, option and help text is the one that people know."""

from __future__ import annotations

from tests.support.command_help import KEPT, render


def test_every_command_is_as_it_is_written_down() -> None:
    assert render() == KEPT.read_text(), "if meant so: python -m tests.support.command_help"
