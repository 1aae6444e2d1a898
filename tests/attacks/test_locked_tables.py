"""Another session of the database server that locks tables: the event loop waits for none."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support import postgres
from tests.support.observe import Observed, demo
from tests.support.platform import Platform

HANG_SECONDS = 10.0
"""Half of what one answer took when the event loop waited for a table."""


@pytest.fixture
def bridge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Observed]:
    postgres.need_server()
    monkeypatch.setenv(postgres.CHOICE, "postgresql")
    with Platform() as platform, Observed(tmp_path, platform, agents={"demo": demo()}) as bridge:
        yield bridge


def test_a_bridge_says_that_it_is_alive_while_tables_are_locked(bridge: Observed) -> None:
    bridge.ask("before", "say Hello")
    number = bridge.begin("during", "tell here\nhold go\nsay went on")
    bridge.held("during", "here")
    session = bridge.session("during")
    with ThreadPoolExecutor() as pool, bridge.store_locked("exclusive"):
        bridge.workspace(session=session).joinpath("go").touch()
        reads = [pool.submit(bridge.http.get, f"/api/v1/sessions/{session}") for _ in range(3)]
        alive = [bridge.http.get("/healthz", timeout=HANG_SECONDS).status_code for _ in range(20)]
        refused = [read.result().status_code for read in reads]
        ready = bridge.http.get("/readyz").status_code

    assert alive == [200] * 20
    assert (refused, ready) == ([503, 503, 503], 503)
    assert bridge.end("during", number)["text"].endswith("went on")
    assert bridge.ask("before", "say Hello again")["text"] == "Hello again"
    assert bridge.http.get("/readyz").status_code == 200
