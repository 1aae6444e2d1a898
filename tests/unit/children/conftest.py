"""Both event loops, the sandboxes of this machine, and a small world with things to hide."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.children import layout
from app.children.environment import agent_environment
from app.children.layout import Confinement
from app.children.proc_table import new_marker
from app.children.process import Child
from app.children.sandbox import Bubblewrap, Plain, Sandbox, find_bubblewrap
from app.children.spawn import ChildCommand, spawn
from app.children.stop import StopSteps, stop


@pytest.fixture(
    params=[
        pytest.param(True, id="uvloop"),
        pytest.param(False, id="asyncio", marks=pytest.mark.slow),
    ]
)
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, object]]:
    """Run on the loop that `serve` uses, and in `make test-all` on asyncio's own too."""
    return "asyncio", {"use_uvloop": request.param}


@pytest.fixture(scope="session")
def bubblewrap() -> Bubblewrap:
    found = find_bubblewrap(os.environ["PATH"])
    if not isinstance(found, Bubblewrap):
        pytest.skip(f"bubblewrap not found on this machine: {found.reason}")
    return found


@pytest.fixture(params=["none", "bubblewrap"])
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    if request.param == "none":
        return Plain()
    found: Sandbox = request.getfixturevalue("bubblewrap")
    return found


@dataclass(frozen=True)
class World:
    """A person's HOME with a checkout and a DATA_DIR in it, and two agents."""

    person: Path
    checkout: Path
    dotenv: Path
    data: Path
    home: Path
    other_home: Path
    workspace: Path
    bridge: str
    marker: str
    env: dict[str, str]

    def confinement(self, **changes: object) -> Confinement:
        given: dict[str, object] = {
            "home": self.home,
            "workspace": self.workspace,
            "person": self.person,
            "masked": (self.data, self.other_home),
            "secrets": (self.dotenv,),
        }
        return Confinement(**(given | changes))  # type: ignore[arg-type]  # fields by name


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    # tmp_path lies in /tmp: were that hidden anyway, no other rule would be seen at work.
    monkeypatch.setattr(layout, "_SCRATCH", ())
    person = tmp_path / "person"
    data = person / ".local/share/agent-bridge"
    paths = {
        "person": person,
        "checkout": person / "checkout",
        "data": data,
        "home": data / "agents/claude/home",
        "other_home": tmp_path / "elsewhere/codex",
        "workspace": data / "sessions/1/workspace",
    }
    for path in paths.values():
        path.mkdir(parents=True)
    dotenv = paths["checkout"] / ".env"
    dotenv.write_text("TOKEN=canary\n")
    (person / "diary").write_text("canary\n")
    (data / "store.db").write_text("canary\n")
    (paths["other_home"] / "login").write_text("canary\n")
    bridge = f"test-{secrets.token_hex(4)}"
    marker = new_marker(bridge)
    env = agent_environment(os.environ, home=paths["home"], own={}, marker=marker)
    return World(**paths, dotenv=dotenv, bridge=bridge, marker=marker, env=env)


Launch = Callable[..., Awaitable[Child]]


@pytest.fixture
async def launch(world: World) -> AsyncIterator[Launch]:
    """Start children of this world that do not outlive the test, whatever becomes of it."""
    children: list[Child] = []

    async def start(*argv: str, sandbox: Sandbox | None = None) -> Child:
        command = sandbox.wrap(argv, world.confinement()) if sandbox else ChildCommand(argv)
        child = await spawn(command, name="claude", env=world.env, cwd=world.workspace)
        children.append(child)
        return child

    yield start
    for child in children:
        await stop(child, steps=StopSteps(close=0, terminate=0))
