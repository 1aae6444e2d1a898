"""Another session of the database server that locks tables, or sends signals that mean nothing."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from tests.support import postgres
from tests.support.observe import Observed, demo
from tests.support.platform import Platform

HANG_SECONDS = 10.0
"""Half of what one answer took when the event loop waited for a table."""

JUNK = (
    *("not json", "null", "5", "{}", "[]", '["a"]', '["a", "news"]', '["a", "news", 5]'),
    *('["a", "nonsense", {}]', '["a", {}, {}]', '[1, "news", {}]', '["a", "reply", []]'),
    *("[" * 7_000, '["a", "news", {"session": NaN}, null]', '"\\ud800"'),
)


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


def test_junk_on_the_channel_of_signals_breaks_nothing(bridge: Observed) -> None:
    bridge.ask("before", "say Hello")
    assert bridge.database is not None
    listens = "select query from pg_stat_activity where query like 'listen agent%'"
    with psycopg.connect(bridge.database, autocommit=True) as stranger:
        listening = stranger.execute(f"{listens} and datname = current_database()").fetchall()
        [channel] = {query.split()[1] for (query,) in listening}
        for words in JUNK:
            stranger.execute("select pg_notify(%s, %s)", (channel, words))

    assert bridge.ask("before", "say Hello again")["text"] == "Hello again"
    log = bridge.log.read_text()
    assert "dropped a signal of 7000 characters that is none of ours" in log
    assert "Exception" not in log
