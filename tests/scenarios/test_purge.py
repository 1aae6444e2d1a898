"""A text that leaked is purged: from the store, all files, repositories and platforms."""

from __future__ import annotations

import base64
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from app.config.configuration import load
from app.config.process import Sealer
from app.features.erasing.cli import purge_text
from tests.support import canary
from tests.support.bridge import ADMIN_TOKEN, SECRET_KEY, BridgeProcess
from tests.support.deep import LEVELS, dug, reach
from tests.support.observe import Observed, demo
from tests.support.platform import Platform
from tests.support.postgres import read_store
from tests.support.studio import BRANCH, studio

pytestmark = pytest.mark.timeout(180)
"""A bridge starts, works, is searched byte by byte, and in one story starts again."""

LEAKED = "zq7-Pelican-4411-secret"


def purge(bridge: BridgeProcess, text: str = LEAKED, **more: Any) -> dict[str, Any]:
    """Purge a text over the API."""
    answer = bridge.http.post("/api/v1/purges", json={"text": text, **more}, timeout=60)
    assert answer.status_code == 200, answer.text
    done: dict[str, Any] = answer.json()
    return done


def test_nothing_holds_a_purged_text_in_any_form(tmp_path: Path) -> None:
    encoded = base64.b64encode(LEAKED.encode()).decode()
    agents = {"demo": demo(mode="free"), "second": demo()}
    with (
        Platform() as platform,
        Observed(tmp_path, platform, agents=agents, hooks=False) as bridge,
    ):
        talk(bridge, "say untouched", "second")
        session = talk(bridge, f"say {LEAKED}\nwrite {LEAKED}.env KEY={LEAKED}\nnote {LEAKED}")
        path = f"/api/v1/sessions/{session}/messages"
        send(bridge, path, f"write b.txt {encoded}\nrun ln -s {LEAKED} link\ngive o.txt {LEAKED}")
        bridge.ended(session, 2)
        for text in (f"Likes {LEAKED}.", "Likes nothing."):
            file = bridge.http.put("/api/v1/agents/demo/files/MEMORY.md", json={"text": text})
            assert file.is_success, file.text
        send(bridge, path, f"ask {LEAKED}? | yes | no")
        bridge.open_asks(1)
        # An agent at work, which was asked a question and has more to do.
        send(bridge, path, f"say {LEAKED} again")
        before = canary.find_every_form(bridge.data_dir, LEAKED)
        places = {each.partition("/")[0].partition(" ")[0] for each in before}
        assert places >= {"session-homes", "uploads", "workspaces", "agents"}
        assert any(LEAKED.encode() in kept for kept in read_store(bridge.data_dir).values())
        assert "delivery" in places

        done = purge(bridge)

        assert canary.find_every_form(bridge.data_dir, LEAKED) == []
        assert not any(LEAKED.encode() in kept for kept in read_store(bridge.data_dir).values())
        assert done["rows"] > 0
        assert done["files"] > 3
        assert [each["why"] for each in done["left"]] == ["copies"]
        # From now on it is a secret, also after a restart.
        bridge.kill()
        bridge.start()
        again = talk(bridge, f"say {LEAKED}", "second")
        rows = bridge.http.get(f"/api/v1/sessions/{again}/transcript").json()["items"]
        assert [row["text"] for row in rows if row["kind"] == "text"] == ["[secret]"]
        # The rest of what was said is there, and the agent goes on.
        send(bridge, path, "say still here")
        bridge.wait(lambda: "still here" in said(bridge, session), "it does not go on", 30)
        assert "[secret]" in said(bridge, session)


@pytest.mark.long
def test_a_purge_that_a_crash_cut_off_is_finished_by_the_next_start(tmp_path: Path) -> None:
    with (
        Platform() as platform,
        Observed(tmp_path, platform, agents={"demo": demo()}, hooks=False) as bridge,
    ):
        session = talk(bridge, f"say {LEAKED}")
        short = bridge.http.post("/api/v1/purges", json={"text": "short"})
        assert (short.status_code, "8 characters" in short.text) == (409, True)
        bridge.kill()
        leave_begun(bridge, LEAKED)
        workspace = bridge.workspace(session=session)
        words = "finished a purge that was cut off"
        with dug(workspace, LEVELS, LEAKED):
            bridge.start()

            bridge.wait(lambda: words in bridge.log.read_text(), "it is not finished", 60)
            assert reach(workspace, LEVELS) == "*" * len(LEAKED)
        assert canary.find_every_form(bridge.data_dir, LEAKED) == []
        assert "[secret]" in said(bridge, session)


@pytest.mark.long
def test_rows_are_purged_before_files_however_long_those_take(tmp_path: Path) -> None:
    with (
        Platform() as platform,
        Observed(tmp_path, platform, agents={"demo": demo()}, hooks=False) as bridge,
    ):
        session = talk(bridge, f"say {LEAKED}")
        large = bridge.workspace(session=session) / "large"
        large.touch()
        os.truncate(large, 1024**4)
        with ThreadPoolExecutor() as pool:
            purging = pool.submit(purge, bridge)

            rows = "select text from transcript where text like ?"
            bridge.wait(lambda: not bridge.rows(rows, f"%{LEAKED}%"), "the rows wait", 10)

            assert not purging.done()
            bridge.kill()
            assert isinstance(purging.exception(), httpx.TransportError)


@pytest.mark.long
def test_a_clone_is_deleted_and_made_again_and_its_unshipped_work_is_named_first(
    tmp_path: Path,
) -> None:
    with studio(tmp_path) as here:
        bridge = here.world.bridge
        here.tell(f"run git commit -q --allow-empty -m {LEAKED} && git reset -q --hard HEAD~1")
        clone = here.workspace()
        assert f"workspaces/{clone.name}/.git" in canary.find_every_form(bridge.data_dir, LEAKED)
        (clone / "mine.txt").write_text("work")

        asked = purge(bridge)

        (left,) = [each["where"] for each in asked["left"] if each["why"] == "unshipped"]
        assert left == f"acme/app {BRANCH} of web:t1:demo: 1 uncommitted change"
        assert (asked["clones"], (clone / "mine.txt").read_text()) == (0, "work")
        found = canary.find_every_form(bridge.data_dir, LEAKED)
        assert {each.split("/")[1] for each in found} == {clone.name}
        (clone / "mine.txt").unlink()

        done = purge(bridge)

        assert (done["clones"], "unshipped" in str(done["left"])) == (1, False)
        assert canary.find_every_form(bridge.data_dir, LEAKED) == []
        assert not clone.exists()
        post = here.tell("write c.txt three")
        (branch,) = here.branches()
        assert (post.content["state"], here.show("c.txt", branch)) == ("done", "three")
        assert rows_of(bridge, "%deleted, because it held a text that was purged%") == 1
        assert canary.find_every_form(bridge.data_dir, LEAKED) == []


@pytest.mark.long
def test_work_that_is_nowhere_else_goes_only_if_that_is_wanted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with studio(tmp_path, entry={"ship": "none"}) as here:
        bridge = here.world.bridge
        here.tell(f"write b.env {LEAKED}\nrun git add . && git commit -qm kept")
        here.command("repo none", "t2")
        by = "git -c user.name=a -c user.email=a@b"
        here.tell(f"run git init -q . && {by} commit -q --allow-empty -m {LEAKED}", "t2")
        here.tell(f"write c.txt {LEAKED}", "t2")
        words = [each["where"] for each in purge(bridge)["left"] if each["why"] == "unshipped"]
        assert [each.rpartition("/")[2] for each in words][1:] == [".git"]
        assert words[0].endswith("1 commit")
        assert bridge.workspace(session=2).joinpath("c.txt").read_text().strip("*") == "\n"

        own = {"PATH": "", "DATA_DIR": str(bridge.data_dir), "BRIDGE_ADMIN_TOKEN": ADMIN_TOKEN}
        configuration, questions = load(own, home=tmp_path), list[str]()

        def confirm(question: str, **_: object) -> bool:
            questions.append(question)
            return True

        monkeypatch.setattr("typer.confirm", confirm)
        purge_text(configuration, LEAKED, discard=False, yes=False)

        assert [each.split()[0] for each in questions] == ["Purge", "Delete"]
        assert "1 clones" in capsys.readouterr().err
        assert canary.find_every_form(bridge.data_dir, LEAKED) == []
        assert here.tell("run git log --oneline").content["state"] == "done"


def rows_of(bridge: BridgeProcess, words: str) -> int:
    """Count the notices with some words."""
    query = "select count(*) from transcript where kind = 'notice' and text like ?"
    return int(bridge.rows(query, words)[0][0])


def talk(bridge: Observed, text: str, agent: str = "demo") -> int:
    """Begin a conversation and wait for its first answer."""
    number = int(bridge.open_session(agent, text)["id"])
    bridge.ended(number)
    return number


def send(bridge: Observed, path: str, text: str) -> None:
    answer = bridge.http.post(path, json={"text": text})
    assert answer.status_code == 202, answer.text


def said(bridge: Observed, session: int) -> str:
    rows = bridge.http.get(f"/api/v1/sessions/{session}/transcript", params={"limit": 500})
    return "\n".join(row["text"] for row in rows.json()["items"] if row["kind"] == "text")


def leave_begun(bridge: Observed, text: str) -> None:
    """Let a stopped bridge have begun a purge, and nothing more."""
    stored = json.dumps({"text": text, "keys": [], "is_done": False})
    value = f"sealed:{Sealer(SecretStr(SECRET_KEY)).seal('store', stored)}"
    bridge.write("insert into sealed values ('purged:begun', ?, 1)", value)
