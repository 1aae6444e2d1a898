"""An agent lets a whole bridge fetch a private repository with all that its user may read.

It names the repository as a submodule of its own branch and has another session work on the branch,
as root and as an ordinary user. The test of submodules alone has a real sshd; this one has a
stand-in that runs what it is asked to, since ssh refuses users without a passwd entry.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.bridge import SECONDS
from tests.support.git_server import GitServer
from tests.support.ordinary import LOOK_SECONDS, USERS, Running, Server, agents, laid_out

SSH = """\
#!/bin/sh
for last; do :; done
echo "$last" >> "{log}"
exec sh -c "$last"
"""
PUSH = (
    "printf '[submodule \"vault\"]\\n\\tpath = vault\\n\\turl = %s\\n' {url} > .gitmodules; "
    "mkdir vault; git add . && git update-index --add --cacheinfo 160000,{commit},vault && "
    "git commit -qm x && git push 2>&1"
)


@dataclass
class Site:
    """A bridge whose user may read private repositories, and what their keys opened."""

    server: Server
    bridge: Running
    vault: str
    """The commit of the private repository."""
    keys_used: Path

    def spawn(self, task: str) -> None:
        """Have another session do something on the branch of the first one, to its end."""
        given = {"agent": "demo", "task": task, "workspace": "same-branch"}
        self.bridge.ask(f"tool agents_spawn {json.dumps(given)}", thread="t1")
        deadline = time.monotonic() + SECONDS
        while not self._is_over():
            assert time.monotonic() < deadline, self.bridge.log.read_text()[-4000:]
            time.sleep(LOOK_SECONDS)

    def _is_over(self) -> bool:
        sessions = self.bridge.http.get("/api/v1/sessions").json()["items"]
        turns = [
            self.bridge.http.get(f"/api/v1/sessions/{each['id']}").json()["turns"]
            for each in sessions
        ]
        states = {turn["state"] for each in turns for turn in each}
        return len(sessions) == 2 and states <= {"done", "failed"}


@pytest.fixture(scope="module", params=USERS)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with laid_out(request.param) as server:
        yield server


@pytest.fixture(params=["file", "ssh"])
def site(server: Server, request: pytest.FixtureRequest) -> Iterator[Site]:
    folder = server.folder / request.param
    remotes = GitServer(folder / "remotes")
    remotes.create("acme/app")
    vault = remotes.create("acme/vault", {"key.txt": "private\n"})
    command, log = folder / "bin" / "ssh", folder / "ssh.log"
    command.parent.mkdir()
    command.write_text(SSH.format(log=log))
    command.chmod(0o755)
    log.touch()
    server.own(folder)
    path = f"{command.parent}:{server.environment()['PATH']}"
    host = {"file": "file://", "ssh": "ssh://git@example.com"}[request.param]
    with server.serving(
        AGENTS_JSON=agents(demo=server.demo(mode="free")),
        GITHUB_REPO=f"{host}{remotes.path('acme/app')}",
        DATA_DIR=str(folder / "data"),
        PATH=path,
    ) as bridge:
        yield Site(server, bridge, vault, log)


@pytest.mark.long
def test_a_branch_that_another_session_works_on_opens_no_private_repository(site: Site) -> None:
    script = PUSH.format(url="../vault.git", commit=site.vault)
    said = site.bridge.ask(f"run {script}", thread="t1")
    assert "[new branch]" in said

    site.spawn("run ls -A vault > found; echo looked >> found")

    data = site.keys_used.parent / "data"
    (found,) = data.glob("workspaces/*/found")
    assert found.read_text() == "looked\n"
    assert [each.name for each in data.glob("mirrors/*.git") if "vault" in each.name] == []
    assert "vault" not in site.keys_used.read_text()
