"""An agent tries to read the bridge's secrets while the operator edits and rotates them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.ordinary import USERS, Running, Server, agents, laid_out
from tests.support.variants import quick

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")

CANARY = "canary-in-a-settings-file"
DISGUISE = "| tr a-z n-za-m"
"""So that no redaction hides what was read."""
DISGUISED = CANARY.translate(
    str.maketrans("abcdefghijklmnopqrstuvwxyz", "nopqrstuvwxyzabcdefghijklm")
)


@pytest.fixture(scope="module", params=quick(1, USERS))
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with laid_out(request.param) as server:
        yield server


@pytest.fixture(scope="module")
def rotated(server: Server) -> Path:
    """Lay a secret in a file of its own."""
    folder = server.folder / "keys"
    folder.mkdir()
    (folder / "token").write_text(f"{CANARY}-of-a-token")
    server.own(folder)
    return folder / "token"


@pytest.fixture(scope="module")
def bridge(server: Server, rotated: Path) -> Iterator[Running]:
    server.dotenv.write_text(f"# {CANARY}\nRETENTION_DAYS=9\n")
    server.dotenv.chmod(0o600)
    server.own(server.dotenv)
    entry = server.demo(mode="free", sandbox="bubblewrap")
    settings = {"MODEL_API_KEY_FILE": str(rotated)}
    with server.serving(
        AGENTS_JSON=agents(demo=entry, other={**entry, "env_passthrough": ["MODEL_API_KEY"]}),
        **settings,
    ) as bridge:
        yield bridge


def by_rename(file: Path) -> None:
    aside = file.with_name("aside")
    shutil.copy2(file, aside)
    aside.rename(file)


def by_sed(file: Path) -> None:
    subprocess.run(["sed", "-i", "s/9/10/", str(file)], check=True)


def by_an_editor_with_backup(file: Path) -> None:
    file.rename(file.with_name(f"{file.name}~"))
    shutil.copy2(file.with_name(f"{file.name}~"), file)


def by_a_new_folder(file: Path) -> None:
    old = file.parent.with_name("old")
    file.parent.rename(old)
    shutil.copytree(old, file.parent, symlinks=True)


def seen_after(bridge: Running, server: Server, file: Path, change: Callable[[Path], None]) -> str:
    """Let a live agent look, change the file outside, let the same process look again."""
    begun = bridge.http.post("/api/v1/sessions", json={"agent": "demo", "text": "say hello"})
    thread = begun.json()["thread"]
    look = f"run cat {file}* {DISGUISE}"
    first = bridge.ask(look, thread=thread)
    change(file)
    server.own(file.parent)
    return first + bridge.ask(look, thread=thread)


@pytest.mark.long
@pytest.mark.parametrize("change", quick(1, [by_rename, by_sed, by_an_editor_with_backup]))
def test_settings_stay_hidden_when_they_are_edited_while_an_agent_lives(
    bridge: Running, server: Server, change: Callable[[Path], None]
) -> None:
    """Attack 1."""
    seen = seen_after(bridge, server, server.dotenv, change)

    assert CANARY in server.dotenv.read_text()
    assert "ended with status" in seen
    assert DISGUISED not in seen


@pytest.mark.parametrize("change", quick(1, [by_rename, by_sed, by_a_new_folder]))
def test_a_secret_in_a_file_stays_hidden_when_it_is_rotated(
    bridge: Running, server: Server, rotated: Path, change: Callable[[Path], None]
) -> None:
    """Attack 1."""
    seen = seen_after(bridge, server, rotated, change)

    assert CANARY in rotated.read_text()
    assert "ended with status" in seen
    assert DISGUISED not in seen


def test_copies_of_the_settings_are_hidden_too(bridge: Running, server: Server) -> None:
    """Attack 24."""
    for name in (".env.bak", ".env~", ".env.swp", ".env.orig"):
        (server.checkout / name).write_text(CANARY)
    server.own(server.checkout)

    look = f"cat {server.checkout}/.env* {DISGUISE}; ls -A {server.checkout}"
    seen = bridge.ask(f"run {look} | sed s/^.env/shown/")

    assert "ended with status 0" in seen
    assert DISGUISED not in seen
    assert "shown" not in seen.partition("ended with status 0")[2]


@pytest.mark.long
def test_no_command_line_inside_names_where_secrets_are(
    bridge: Running, server: Server, rotated: Path
) -> None:
    """Attack 24."""
    seen = bridge.ask("run cat /proc/[0-9]*/cmdline | tr '\\0' '\\n' | grep -v grep")

    assert "ended with status 0" in seen
    assert str(rotated) not in seen
    assert ".env" not in seen
    assert str(server.data_dir / "secrets") not in seen


@pytest.mark.slow
@pytest.mark.parametrize("user", quick(1, USERS))
def test_a_secret_whose_folder_cannot_be_hidden_refuses_to_start(user: str, tmp_path: Path) -> None:
    file = next(path for path in ("/etc/machine-id", "/etc/hostname") if os.access(path, os.R_OK))
    with laid_out(user) as server:  # type: ignore[arg-type]  # one of USERS
        entry = server.demo(sandbox="bubblewrap", env_passthrough=["MODEL_API_KEY"])
        ended = server.run(
            "agent-bridge", "serve", AGENTS_JSON=agents(demo=entry), MODEL_API_KEY_FILE=file
        )

    assert ended.returncode != 0
    assert "cannot be hidden from agents" in ended.stderr
    assert "Move it to a separate folder" in ended.stderr
