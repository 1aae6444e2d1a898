"""What isolation tests rely on: commands run as an ordinary user, laid out as on a server."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.ordinary import USERS, Server, agents, laid_out
from tests.support.variants import quick


@pytest.fixture(scope="module", params=USERS)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with laid_out(request.param) as server:
        yield server


def test_a_command_runs_as_the_user_with_nothing_of_another(server: Server) -> None:
    said = server.run("sh", "-c", "id -u; id -g; id -G; echo $HOME; pwd").stdout.split()

    assert said == [str(server.uid)] * 3 + [str(server.home), str(server.checkout)]


@pytest.mark.long
@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
@pytest.mark.parametrize("sandbox", quick(1, ["bubblewrap", "none"]))
def test_a_bridge_is_served_by_the_user_and_runs_an_agent(server: Server, sandbox: str) -> None:
    settings = {"AGENTS_JSON": agents(demo=server.demo(mode="free", sandbox=sandbox))}

    with server.serving(**settings) as bridge:
        said = server.run("agent-bridge", "ask", "demo", "run id -u", **settings)
        status = Path(f"/proc/{bridge.pid}/status").read_text()

    assert f"\nUid:\t{server.uid}\t{server.uid}\t" in status
    assert said.returncode == 0, said.stderr
    is_own = server.uid == 0 and sandbox != "none"  # root's isolated agents have their own users
    assert (str(server.uid) in said.stdout.split()) != is_own
    assert (server.data_dir / "bridge.db").stat().st_uid == server.uid
