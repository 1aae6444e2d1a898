"""The probe tells the truth to every user, and an agent that it finds open stays closed."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator

import pytest

from tests.support.ordinary import IS_ROOT, USERS, Running, Server, agents, laid_out
from tests.support.variants import quick

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")

SECONDS = 30.0
NO_SANDBOX = """#!/bin/sh
# Takes the place of bubblewrap and confines nothing.
while [ "$1" != "--" ]; do shift; done
shift
exec "$@"
"""


@pytest.fixture(scope="module", params=quick(1, USERS))
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with laid_out(request.param) as server:
        yield server


def isolation(bridge: Running, agent: str = "demo") -> str:
    """Wait for the verdict of the probe."""
    deadline = time.monotonic() + SECONDS
    while f"{agent}: " not in bridge.log.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return str(bridge.http.get(f"/api/v1/agents/{agent}").json()["isolation"])


@pytest.mark.slow
def test_an_isolated_agent_is_found_to_be_isolated_whoever_runs_the_bridge(server: Server) -> None:
    """Attack 2."""
    with server.serving(
        LOG_LEVEL="debug", AGENTS_JSON=agents(demo=server.demo(sandbox="bubblewrap"))
    ) as bridge:
        assert isolation(bridge).startswith("isolated (bubblewrap)")
        assert bridge.http.get("/readyz").is_success


@pytest.mark.long
def test_an_agent_that_must_be_isolated_and_is_not_stays_closed_and_everybody_is_told(
    server: Server,
) -> None:
    """Attack 3."""
    folder = server.folder / "no-sandbox"
    folder.mkdir(exist_ok=True)
    (folder / "bwrap").write_text(NO_SANDBOX)
    (folder / "bwrap").chmod(0o755)
    folder.chmod(0o755)
    settings = {
        "PATH": f"{folder}:{server.environment()['PATH']}",
        "AGENTS_JSON": agents(demo=server.demo(sandbox="bubblewrap", mode="free")),
    }

    with server.serving("/healthz", **settings) as bridge:
        said = isolation(bridge)
        answer = bridge.ask(f"run cat {server.data_dir}/secrets && touch {server.home}/proof")
        ready = bridge.http.get("/readyz")
    doctor = server.run("agent-bridge", "doctor", **settings)

    # As root it cannot even get there: what is hidden is closed to the agent's own user.
    reason = "the probe failed" if server.uid == 0 else "it can read DATA_DIR"
    assert said.startswith(f"closed, not isolated: {reason}")
    assert "it must be isolated" in answer
    assert not (server.home / "proof").exists()
    assert ready.status_code == 503
    assert reason in ready.text
    assert doctor.returncode != 0
    assert reason in doctor.stdout


@pytest.mark.long
@pytest.mark.skipif(not IS_ROOT, reason="only root can run a bridge as root")
def test_an_agent_of_a_root_bridge_is_not_root_itself() -> None:
    """Attack 25."""
    with laid_out("root") as server:
        entry = server.demo(sandbox="bubblewrap", mode="free")
        with server.serving(
            LOG_LEVEL="debug", AGENTS_JSON=agents(demo=entry, other=entry)
        ) as bridge:
            seen = bridge.ask(
                "run head -1 /etc/shadow; ls /etc/ssl/private; id -u; touch mine ~/mine; stat mine"
            )
            other = bridge.ask("run id -u", "other")

    assert "root:" not in seen
    assert "ended with status 0" in seen
    ids = {line for line in (seen + other).splitlines() if line.isdigit()}
    assert len(ids) == 2
    assert not {"0", str(os.geteuid())} & ids


@pytest.mark.slow
@pytest.mark.skipif(not IS_ROOT, reason="only root can run a bridge as root")
def test_a_root_bridge_says_what_an_agent_without_isolation_is() -> None:
    """Attack 25."""
    with laid_out("root") as server:
        entry = server.demo(sandbox="none")
        with server.serving(LOG_LEVEL="debug", AGENTS_JSON=agents(demo=entry)) as bridge:
            said = isolation(bridge)

    assert "as root" in said


@pytest.mark.slow
@pytest.mark.skipif(not IS_ROOT, reason="only root can run a bridge as root")
def test_an_agent_of_a_root_bridge_works_where_only_root_may_enter() -> None:
    with laid_out("root") as server:
        closed = server.folder / "closed"
        closed.mkdir(mode=0o700)
        (closed / "notes").write_text("for root alone")
        settings = {
            "AGENTS_JSON": agents(demo=server.demo(sandbox="bubblewrap", mode="free")),
            "DATA_DIR": str(closed / "data"),
        }
        with server.serving(**settings) as bridge:
            seen = bridge.ask(f"run touch mine ~/mine && id -u; cat {closed}/notes")

    assert "for root alone" not in seen
    assert [line for line in seen.splitlines() if line.isdigit() and line != "0"]
