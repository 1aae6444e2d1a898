"""An agent on another machine does what one here does, over connections that are cut."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.bridge import DEMO
from tests.support.nursery import COMMAND
from tests.support.observe import Observed
from tests.support.platform import Platform
from tests.support.relays import TOKEN, Elsewhere

pytestmark = pytest.mark.one_database

FAULTS = {"AGENT_BRIDGE_DEMO_FAULTS": "1"}
HOLD_SECONDS = 1.0


def elsewhere(tmp_path: Path, **more: Any) -> Elsewhere:
    """Make a machine with the demo agent behind a relay."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return Elsewhere(DEMO, folder, environment=FAULTS, **more)


def free_port() -> int:
    """Find a port that no one listens on."""
    with socket.socket() as spare:
        spare.bind(("127.0.0.1", 0))
        return int(spare.getsockname()[1])


def test_a_remote_agent_answers_asks_and_is_stopped_like_one_here(tmp_path: Path) -> None:
    with elsewhere(tmp_path) as there, Platform() as platform:
        with Observed(tmp_path, platform, {"demo": there.entry}) as bridge:
            said = bridge.ask("t1", "say hello from afar")
            number = bridge.begin("t1", "run touch made.txt")
            (ask,) = bridge.open_asks()
            bridge.answer(ask)
            made = bridge.end("t1", number)
            number = bridge.begin("t1", "tell begun\nslow 600")
            bridge.wait((there.folder / "begun").exists, "it does not begin")
            assert bridge.say("t1", "stop", "demo") == 200
            stopped = bridge.end("t1", number)
            recalled = bridge.ask("t1", "recall")

        assert said["text"].endswith("hello from afar")
        assert (made["state"], made["note"]) == ("done", "")
        assert (there.folder / "made.txt").exists()
        assert stopped["state"] == "stopped"
        assert recalled["text"].count("hello from afar") == 1
        assert there.address.processes() == []


def test_a_turn_outlives_a_short_cut_and_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    with elsewhere(tmp_path) as there, Platform() as platform:
        with Observed(tmp_path, platform, {"demo": there.entry}) as bridge:
            number = bridge.begin("t1", "say before\ntell begun\nhold go\nflood 300\nsay after")
            bridge.wait((there.folder / "begun").exists, "it does not begin")

            there.cut(for_good=True)
            (there.folder / "go").touch()
            there.mend()
            whole = bridge.end("t1", number)
            again = bridge.ask("t1", "say still here")

        assert there.proxy.connections == 2
        assert whole["state"] == "done"
        assert whole["text"].startswith("before")
        assert whole["text"].endswith("after")
        assert again["text"].endswith("still here")


def test_an_ask_is_answered_over_another_connection_than_it_came(tmp_path: Path) -> None:
    with elsewhere(tmp_path) as there, Platform() as platform:
        with Observed(tmp_path, platform, {"demo": there.entry}) as bridge:
            number = bridge.begin("t1", "run touch made.txt")
            (ask,) = bridge.open_asks()

            there.cut()
            bridge.answer(ask)
            made = bridge.end("t1", number)

        assert made["state"] == "done"
        assert (there.folder / "made.txt").exists()
        assert there.proxy.connections == 2


def test_a_cut_that_lasts_is_told_and_the_conversation_goes_on_later(tmp_path: Path) -> None:
    with elsewhere(tmp_path, hold_seconds=HOLD_SECONDS) as there, Platform() as platform:
        with Observed(tmp_path, platform, {"demo": there.entry}) as bridge:
            bridge.ask("t1", "say the password is swordfish")
            number = bridge.begin("t1", "tell begun\nhold go")
            bridge.wait((there.folder / "begun").exists, "it does not begin")

            there.cut(for_good=True)
            told = bridge.end("t1", number)
            bridge.wait(lambda: there.address.processes() == [], "its process goes on")
            there.mend()
            recalled = bridge.ask("t1", "recall")

        assert told["state"] == "failed"
        assert "was cut off: the connection to 127.0.0.1 ended" in told["note"]
        assert recalled["text"].count("the password is swordfish") == 1


def test_a_bridge_that_comes_back_shares_no_conversation_with_the_process_it_left(
    tmp_path: Path,
) -> None:
    with elsewhere(tmp_path) as there, Platform() as platform:
        with Observed(tmp_path, platform, {"demo": there.entry}) as bridge:
            number = bridge.begin("t1", "say the password is swordfish\ntell begun\nhold go")
            bridge.wait((there.folder / "begun").exists, "it does not begin")
            (left,) = there.address.processes()

            bridge.kill()
            (there.folder / "begun").unlink()
            bridge.start()
            bridge.wait((there.folder / "begun").exists, "it does not go on")
            now = there.address.processes()
            (there.folder / "go").touch()
            done = bridge.end("t1", number)

        assert left not in now
        assert len(now) == 1
        assert done["state"] == "done"


def test_messages_of_megabytes_pass_and_longer_ones_end_the_turn_with_the_limit(
    tmp_path: Path,
) -> None:
    with elsewhere(tmp_path) as there, Platform() as platform:
        with Observed(tmp_path, platform, {"demo": there.entry}) as bridge:
            large = bridge.ask("t1", f"line {3 * 1024 * 1024}\ngarbage 1\nsay done with it")
            longer = bridge.ask("t1", f"line {9 * 1024 * 1024}\ngarbage 1\nsay done with it")

        assert large["text"].endswith("done with it")
        assert longer["state"] == "failed"
        assert "a message of more than 8 MiB" in longer["note"]


def test_an_agent_that_dies_elsewhere_is_told_with_its_last_words(tmp_path: Path) -> None:
    with elsewhere(tmp_path) as there, Platform() as platform:
        with Observed(tmp_path, platform, {"demo": there.entry}) as bridge:
            crashed = bridge.ask("t1", "crash")
            again = bridge.ask("t1", "say back again")

        assert (crashed["state"], again["state"]) == ("failed", "done")
        assert "crashed" in crashed["note"]


def test_what_is_shown_says_where_it_runs(tmp_path: Path) -> None:
    with elsewhere(tmp_path) as there, Platform() as platform:
        with Observed(tmp_path, platform, {"demo": there.entry}, page=True) as bridge:
            (card,) = bridge.http.get("/api/v1/agents").json()["items"]
            bridge.ask("t1", "say hello")
            (prompt,) = bridge.rows("select prompt from turn")

        assert card["isolation"].startswith("not ours: runs at 127.0.0.1.")
        assert card["command"] == "127.0.0.1"
        assert "You work on your own machine with your own files" in prompt[0]
        assert str(tmp_path) not in prompt[0]
        assert TOKEN not in bridge.log.read_text()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"env": {"AGENT_TOKEN": "wrong-token-of-a-stranger"}}, "refused the token"),
        ({"url": "ws://127.0.0.1:9/agent"}, "cannot be reached"),
    ],
    ids=["wrong token", "nobody there"],
)
def test_a_machine_that_cannot_be_used_is_named_with_the_remedy(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    with elsewhere(tmp_path) as there, Platform() as platform:
        entry = {**there.entry, **change}
        with Observed(tmp_path, platform, {"demo": entry}) as bridge:
            failed = bridge.ask("t1", "say hello")

        assert failed["state"] == "failed"
        assert f"127.0.0.1 {words}" in failed["note"]
        assert there.address.processes() == []


def test_the_command_serves_an_agent_until_it_is_told_to_end(tmp_path: Path) -> None:
    port = free_port()
    command = [COMMAND, "relay", "--port", str(port), *DEMO]
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "RELAY_TOKEN": TOKEN}
    serving = subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment | FAULTS,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert serving.stderr is not None
    try:
        assert serving.stderr.readline().startswith("Relaying ")
        entry = {"url": f"ws://127.0.0.1:{port}", "env": {"AGENT_TOKEN": TOKEN}}
        with Platform() as platform, Observed(tmp_path, platform, {"demo": entry}) as bridge:
            said = bridge.ask("t1", "say hello")
            number = bridge.begin("t1", "env\ntell begun\nhold go")
            bridge.wait((tmp_path / "begun").exists, "it does not begin")
            serving.send_signal(signal.SIGTERM)
            told = bridge.end("t1", number)

        assert said["text"].endswith("hello")
        assert told["state"] == "failed"
        assert "RELAY_TOKEN" not in told["text"]
        assert serving.wait(30) == 0
    finally:
        serving.kill()
        serving.communicate()


def test_an_agent_elsewhere_is_added_while_the_bridge_runs(tmp_path: Path) -> None:
    with elsewhere(tmp_path) as there, Platform() as platform:
        with Observed(tmp_path, platform, page=True, hooks=False) as bridge:
            entry = {"name": "afar", **there.entry}
            added = bridge.http.post("/api/v1/agents", json=entry)
            shown = bridge.http.get("/api/v1/agents/afar").json()
            session = bridge.open_session("afar", "say hello from afar")
            turns = bridge.ended(session["id"])["turns"]
            changed = bridge.http.patch("/api/v1/agents/afar", json={"sandbox": "auto"})

        assert added.status_code == 201
        assert TOKEN not in added.text
        assert TOKEN not in str(shown)
        assert shown["isolation"].startswith("not ours: runs at 127.0.0.1.")
        assert [turn["state"] for turn in turns] == ["done"]
        assert session["repository"] == "elsewhere:127.0.0.1"
        assert changed.status_code == 422
        assert "has url and sandbox" in changed.text


@pytest.mark.parametrize(
    ("token", "words"),
    [
        (TOKEN, "answers as Demo agent"),
        ("wrong-token-of-a-stranger", "127.0.0.1 refused the token"),
    ],
    ids=["right", "wrong"],
)
@pytest.mark.long
def test_the_check_without_a_bridge_tries_the_connection(
    tmp_path: Path, token: str, words: str
) -> None:
    with elsewhere(tmp_path) as there:
        entry = {**there.entry, "env": {"AGENT_TOKEN": token}, "driver": "demo"}
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "DATA_DIR": str(tmp_path / "data"),
            "AGENTS_JSON": json.dumps({"afar": entry}),
        }
        checked = subprocess.run(
            [COMMAND, "doctor"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        left = there.address.processes()

    assert words in checked.stdout
    assert "not ours: runs at 127.0.0.1" in checked.stdout
    assert token not in checked.stdout + checked.stderr
    assert (checked.returncode == 0) is (token == TOKEN)
    assert left == []
