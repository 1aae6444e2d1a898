"""An agent that serves ACP over Streamable HTTP: the same turns, asks and limits."""

from __future__ import annotations

from pathlib import Path

from tests.support.observe import Observed
from tests.support.platform import Platform
from tests.support.served_agent import Served


def test_an_agent_over_http_answers_asks_and_is_stopped(tmp_path: Path) -> None:
    with (
        Served() as there,
        Platform() as platform,
        Observed(tmp_path, platform, {"demo": there.entry}) as bridge,
    ):
        said = bridge.ask("t1", "say hello over HTTP")
        number = bridge.begin("t1", "ask")
        (ask,) = bridge.open_asks()
        bridge.answer(ask)
        asked = bridge.end("t1", number)
        number = bridge.begin("t1", "wait")
        bridge.wait(lambda: "waiting" in str(bridge.rows("select text from transcript")), "no word")
        assert bridge.say("t1", "stop", "demo") == 200
        stopped = bridge.end("t1", number)

    assert (said["state"], said["text"]) == ("done", "hello over HTTP")
    assert asked["text"] == "answered: selected"
    assert stopped["state"] == "stopped"


def test_messages_of_megabytes_pass_over_http_and_longer_ones_do_not(tmp_path: Path) -> None:
    with (
        Served() as there,
        Platform() as platform,
        Observed(tmp_path, platform, {"demo": there.entry}) as bridge,
    ):
        large = bridge.ask("t1", f"big {3 * 1024 * 1024}")
        longer = bridge.ask("t1", f"big {9 * 1024 * 1024}")

    assert (large["state"], set(large["text"][:1000])) == ("done", {"x"})
    assert longer["state"] == "failed"
    assert "a message of more than 8 MiB" in longer["note"]


def test_a_cut_over_http_is_told_and_a_conversation_that_is_not_served_is_begun_anew(
    tmp_path: Path,
) -> None:
    with Platform() as platform, Served() as there:
        entry = there.entry
        with Observed(tmp_path, platform, {"demo": entry}) as bridge:
            first = bridge.ask("t1", "say the first thing")
            bridge.kill()
            bridge.start()
            again = bridge.ask("t1", "say the second thing")
            number = bridge.begin("t1", "wait")
            seen = "select count(*) from transcript where text like 'waiting%'"
            bridge.wait(lambda: bridge.rows(seen) == [(1,)], "no word")
            there.cut()
            cut = bridge.end("t1", number)
            gone = bridge.ask("t1", "say anything")

    assert first["text"] == "the first thing"
    assert (again["state"], again["text"]) == ("done", "the second thing")
    assert cut["state"] == "failed"
    assert "the connection to 127.0.0.1 ended" in cut["note"]
    assert "127.0.0.1 cannot be reached" in gone["note"]


def test_a_wrong_token_over_http_is_told(tmp_path: Path) -> None:
    with Platform() as platform, Served() as there:
        entry = {**there.entry, "env": {"AGENT_TOKEN": "a-wrong-one-altogether"}}
        with Observed(tmp_path, platform, {"demo": entry}) as bridge:
            refused = bridge.ask("t1", "say hello")

    assert refused["state"] == "failed"
    assert "127.0.0.1 refused the token. Set AGENT_TOKEN" in refused["note"]
    assert "a-wrong-one" not in bridge.log.read_text()
