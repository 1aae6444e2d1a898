"""A DATA_DIR of the release before agents had ids: every conversation goes on.

`tests/golden/data-0003.tar.gz` was written by that release, killed while its agents worked: it has
sessions of `claude`, done or waiting for an answer, and those of `gone`, which has no entry now.
"""

from __future__ import annotations

import sqlite3
import tarfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.scenarios.test_registry import problem, words
from tests.support.bridge import ROOT
from tests.support.observe import Observed, demo
from tests.support.platform import Platform
from tests.support.postgres import only_on_files

pytestmark = only_on_files("that release knew none")

DATA = ROOT / "tests" / "golden" / "data-0003.tar.gz"


@pytest.fixture
def bridge(tmp_path: Path) -> Iterator[Observed]:
    with tarfile.open(DATA) as archive:
        archive.extractall(tmp_path / "data", filter="data")
    (tmp_path / "data").chmod(0o700)
    with closing(sqlite3.connect(tmp_path / "data" / "bridge.db")) as store, store:
        store.execute("update ask set deadline = ?", [time.time() + 3600.0])
    with (
        Platform() as platform,
        Observed(tmp_path, platform, agents={"claude": demo()}, hooks=False) as bridge,
    ):
        yield bridge


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
