"""Data of earlier releases: every conversation goes on.

`tests/golden/data-0003.tar.gz` was written by the release before agents had ids, killed while its
agents worked: it has sessions of `claude`, done or waiting for an answer, and those of `gone`,
which has no entry now. `data-0007.tar.gz` is of the release before grants: an open ask, a schedule,
an agent that asked another one, and one that is paused with a message waiting. `data-0007.sql.gz`
is what that release made of the same file on PostgreSQL.
"""

from __future__ import annotations

import gzip
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from app.store.database.schema import HEAD_REVISION
from tests.scenarios.test_registry import problem, words
from tests.support.bridge import ROOT
from tests.support.observe import Observed, demo
from tests.support.platform import Platform
from tests.support.postgres import need_server, only_on_files, server
from tests.support.terminal import succeed

GOLDEN = ROOT / "tests" / "golden"


@contextmanager
def opened(
    folder: Path, version: str, *agents: str, settings: dict[str, str] | None = None
) -> Iterator[Observed]:
    """Start this release on the data of another one, at the time when that was written."""
    with tarfile.open(GOLDEN / f"data-{version}.tar.gz") as archive:
        archive.extractall(folder / "data", filter="data")
    (folder / "data").chmod(0o700)
    entries = {name: demo(permissions="trusted") for name in agents}
    with Platform() as platform:
        bridge = Observed(folder, platform, agents=entries, settings=settings or {}, hooks=False)
        bridge.write("update ask set deadline = ?", time.time() + 3600.0)
        with bridge:
            yield bridge


@pytest.fixture
def bridge(tmp_path: Path) -> Iterator[Observed]:
    with opened(tmp_path, "0003", "claude") as bridge:
        yield bridge


@pytest.fixture(params=["sqlite", "postgresql"])
def before(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Observed]:
    settings = {}
    if request.param == "postgresql":
        need_server()
        settings["DATABASE_URL"] = url = server().provide_empty(tmp_path)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(gzip.decompress((GOLDEN / "data-0007.sql.gz").read_bytes()))
    with opened(tmp_path, "0007", "claude", "codex", settings=settings) as bridge:
        yield bridge


@only_on_files("that release knew none")
def test_sessions_of_the_release_before_go_on(bridge: Observed) -> None:
    listed = bridge.http.get("/api/v1/sessions").json()["items"]
    assert {each["id"]: each["agent"] for each in listed} == {
        1: "claude",
        2: "gone",
        3: "claude",
        4: "claude",
        5: "gone",
    }

    for session, word in ((1, "swordfish"), (3, "trout")):
        bridge.http.post(f"/api/v1/sessions/{session}/messages", json={"text": "recall"})
        bridge.ended(session, 2)
        assert word in words(bridge, session).partition("recall")[2]
    (ask,) = bridge.open_asks()
    answer = bridge.http.post(f"/api/v1/asks/{ask}/answer", json={"option": "option-1"})
    assert answer.status_code == 200, answer.text
    assert "Red" in words(bridge, 4)

    for session in (2, 5):
        found = bridge.http.get(f"/api/v1/sessions/{session}").json()
        assert (found["state"], found["agent"]) == ("removed", "gone")
        said = bridge.http.post(f"/api/v1/sessions/{session}/messages", json={"text": "say x"})
        assert "was removed" in problem(said, 410)
    assert "haddock" in words(bridge, 2)
    new = bridge.open_session("claude", "say hello", thread=listed[-1]["thread"])
    assert bridge.ended(new["id"])["turns"][-1]["state"] == "done"


@only_on_files("it chooses the database itself")
def test_what_the_release_before_knew_goes_on_on_both_databases(before: Observed) -> None:
    assert before.rows("select version_num from alembic_version") == [(HEAD_REVISION,)]
    listed = before.http.get("/api/v1/sessions").json()["items"]
    assert {each["id"]: each["state"] for each in listed} == {
        1: "parked",
        2: "waiting",
        3: "parked",
        4: "parked",
        5: "queued",
    }

    before.http.post("/api/v1/sessions/1/messages", json={"text": "recall"})
    before.ended(1, 2)
    assert "swordfish" in words(before, 1).partition("recall")[2]
    (ask,) = before.open_asks()
    answer = before.http.post(f"/api/v1/asks/{ask}/answer", json={"option": "option-1"})
    assert answer.status_code == 200, answer.text
    before.ended(2)
    assert "Red" in words(before, 2)

    (asked,) = before.http.get("/api/v1/sessions/3/turns/3").json()["delegations"]
    assert (asked["agent"], asked["task"]) == ("codex", "say haddock")
    (schedule,) = before.http.get("/api/v1/schedules").json()["items"]
    assert (schedule["expression"], schedule["words"]) == ("0 9 * * 1-5", "say tick")

    assert before.rows("select scope from suspension") == [("agent:codex",)]
    succeed(before, "resume", "codex")
    before.ended(5, 2)
    assert "while paused" in words(before, 5).partition("say while paused")[2]
