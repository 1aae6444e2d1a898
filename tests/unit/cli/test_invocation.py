"""Hints name the command as it can be run, and a browser is opened only in front of a person."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from app.cli.serve import is_desktop, open_browser
from app.terminal.framing import command_name, hint


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a checkout that has the command in its virtual environment."""
    found = tmp_path / "checkout" / ".venv" / "bin" / "agent-bridge"
    found.parent.mkdir(parents=True)
    found.touch(mode=0o755)
    monkeypatch.chdir(tmp_path / "checkout")
    return found


def test_a_command_on_path_has_its_plain_name(script: Path) -> None:
    assert command_name(str(script), path=str(script.parent)) == "agent-bridge"


def test_a_command_that_is_not_on_path_has_its_path(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = command_name(".venv/bin/agent-bridge", path="/usr/bin")
    monkeypatch.chdir("/usr")
    elsewhere = command_name(str(script), path="/usr/bin")

    assert (here, elsewhere) == (".venv/bin/agent-bridge", str(script))


def test_another_command_of_that_name_on_path_is_not_meant(script: Path, tmp_path: Path) -> None:
    (tmp_path / "agent-bridge").touch(mode=0o755)

    assert command_name(str(script), path=str(tmp_path)) == ".venv/bin/agent-bridge"


def test_quoted_commands_get_the_real_name(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [str(script)])
    monkeypatch.setenv("PATH", "/usr/bin")

    assert hint("Run `agent-bridge doctor`; agent-bridge is fine.") == (
        "Run `.venv/bin/agent-bridge doctor`; agent-bridge is fine."
    )


SCREEN = {"DISPLAY": ":0"}


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", SCREEN, True),
        ("linux", {"WAYLAND_DISPLAY": "wayland-0"}, True),
        ("linux", {}, False),
        ("linux", {**SCREEN, "SSH_CONNECTION": "10.0.0.1 1 10.0.0.2 22"}, False),
        ("linux", {**SCREEN, "CI": "true"}, False),
        ("darwin", {}, True),
        ("darwin", {"SSH_TTY": "/dev/pts/1"}, False),
    ],
)
def test_a_browser_is_opened_only_for_a_person_at_a_screen(
    monkeypatch: pytest.MonkeyPatch, platform: str, environment: dict[str, str], expected: bool
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert is_desktop(environment) is expected

    monkeypatch.setattr(sys.stdout, "isatty", lambda: False, raising=False)
    assert is_desktop(environment) is False


def test_the_browser_gets_the_address_as_it_is_and_is_not_waited_for(tmp_path: Path) -> None:
    opener, seen = tmp_path / "xdg-open", tmp_path / "seen"
    opener.write_text(f'#!/bin/sh\nprintf %s "$1" > {seen}\n')
    opener.chmod(0o755)
    os.mkfifo(seen)  # it blocks the browser until the test reads
    address = "http://x.localhost:1/login/a'b$(touch c)"

    assert open_browser(address, {"PATH": f"{tmp_path}:/usr/bin:/bin"})

    assert seen.read_text() == address
    assert not (tmp_path / "c").exists()


def test_without_a_browser_nothing_is_opened() -> None:
    assert not open_browser("http://127.0.0.1/", {"PATH": "/nowhere"})
