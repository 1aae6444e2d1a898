"""An agent makes folders that no path reaches, or that no one may read, to escape what erases."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.children.sandbox import Unavailable, find_bubblewrap
from tests.support.deep import BELOW_PATHS, LEVELS, reach
from tests.support.ordinary import USERS, Running, Server, agents, laid_out

FOUND = find_bubblewrap(os.environ["PATH"])
pytestmark = [
    pytest.mark.skipif(
        isinstance(FOUND, Unavailable), reason=f"{FOUND}: an agent cannot be confined"
    ),
    pytest.mark.timeout(300),
]
LEAKED = "zq7-Pelican-4411-secret"
CLOSED = {"closed": 0o000, "blind": 0o300}


@dataclass(frozen=True, slots=True)
class House:
    """A bridge whose agent has dug, in a conversation of its own for each test."""

    server: Server
    bridge: Running
    data_dir: Path

    def dig(self, text: str, agent: str = "demo") -> int:
        """Have an agent dig in its workspace and its home; returns its session."""
        made = " ".join(f"mkdir {name}; echo {text} > {name}/a;" for name in CLOSED)
        closed = " ".join(f"chmod {mode:o} {name};" for name, mode in CLOSED.items())
        python = self.server.checkout / ".venv" / "bin" / "python"
        script = (
            "import os; [(os.mkdir('d'), os.chdir('d')) for _ in range({})]; "
            f"open('found', 'w').write('{text}')"
        )
        below = f'{python} -c "{script.format(LEVELS)}"'
        deep = f'cd ~; {python} -c "{script.format(BELOW_PATHS)}"'
        answer = self.bridge.ask(f"run {below}; echo {text} > plain; {made} {closed} {deep}", agent)
        assert "status 0" in answer, answer
        items = self.bridge.http.get("/api/v1/sessions").json()["items"]
        return max(int(each["id"]) for each in items if each["agent"] == agent)

    def place(self, session: int) -> int:
        """Return the number of the conversation that a session is in."""
        items = self.bridge.http.get("/api/v1/conversations").json()["items"]
        return next(
            int(each["id"])
            for each in items
            if session in [member["id"] for member in each["sessions"]]
        )

    def workspace(self, session: int, agent: str = "demo") -> Path:
        return self.data_dir / "workspaces" / f"{session}-{agent}"

    def home(self, session: int, agent: str = "demo") -> Path:
        return self.data_dir / "session-homes" / f"{session}-{agent}"

    @property
    def closed_to_the_bridge(self) -> set[str]:
        """The folders that the bridge cannot read: all are open to root."""
        return set(CLOSED) if self.server.uid else set()


@pytest.fixture(params=USERS)
def house(request: pytest.FixtureRequest) -> Iterator[House]:
    with laid_out(request.param) as server:
        entry = server.demo(mode="free", driver="demo")
        with server.serving(AGENTS_JSON=agents(demo=entry)) as bridge:
            added = bridge.http.post("/api/v1/agents", json={"name": "gone", **entry})
            assert added.is_success, added.text
            yield House(server, bridge, server.data_dir)


@pytest.mark.long
def test_all_that_erases_and_keeps_reaches_the_deepest_folder_and_tells_of_closed_ones(
    house: House,
) -> None:
    server, http, stars = house.server, house.bridge.http, "*" * len(LEAKED)
    session = house.dig(LEAKED)
    workspace, home = house.workspace(session), house.home(session)

    purged = http.post("/api/v1/purges", json={"text": LEAKED}, timeout=120)

    assert purged.status_code == 200, purged.text
    assert (workspace / "plain").read_text().strip() == stars
    assert (reach(workspace, LEVELS), home.exists()) == (stars, False)
    unread = [Path(each["where"]) for each in purged.json()["left"] if each["why"] == "unread"]
    assert {each.name for each in unread} == house.closed_to_the_bridge
    rows = http.get(f"/api/v1/sessions/{session}/transcript").text
    assert ("[secret]" in rows, LEAKED in rows) == (True, False)

    backup, other = str(server.home / "deep.backup"), server.folder / "restored"
    made = server.succeed("backup", backup)
    checked = server.succeed("backup", "--check", backup)
    server.succeed("restore", backup, DATA_DIR=str(other))

    told = [line for line in made.splitlines() if line.startswith("Could not be read: data/")]
    assert {line.rpartition("/")[2] for line in told} == house.closed_to_the_bridge
    assert "can be restored" in checked
    assert reach(other / workspace.relative_to(house.data_dir), LEVELS) == stars

    deleted = http.delete(f"/api/v1/conversations/{house.place(session)}", timeout=60)

    assert deleted.status_code == 204, deleted.text
    assert (workspace.exists(), home.exists()) == (False, False)

    house.dig("anything", "gone")
    removed = http.delete("/api/v1/agents/gone", timeout=60)

    assert removed.is_success, removed.text
    assert http.get("/readyz").is_success
