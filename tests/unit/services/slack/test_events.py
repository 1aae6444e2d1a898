"""What Slack's frames mean to the core."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import DeliveryUnreadable
from app.model.inbound import Answered, Changed, Delivery, Heard, Inbound
from app.model.keys import PlaceKey
from app.model.types import File, Speaker
from app.services.slack.events import FrameReader
from app.services.slack.people import Seal
from app.services.slack.text import FrameContext, everything_in, files_of, plain

SEAL = Seal("secret-key-of-the-tests")
KNOWN = FrameContext(
    agents={"UCLAUDE": "claude", "UCODEX": "codex"},
    names={"U1": "Ann", "U2": "Bob"},
    home="https://home.slack.com/",
)


def read(frame: Any, known: FrameContext = KNOWN, bots: tuple[str, ...] = ()) -> Inbound | None:
    """Read a frame as it is stored, then again with the names of people, as the adapter does."""
    reader = FrameReader("claude", bots, SEAL.open)
    stored = Delivery("slack:claude", "Ev1", None, known.headers(), orjson.dumps(frame), 0.0)
    return None if reader.read(stored) is None else reader.interpret(frame, known)


def event(**event: Any) -> dict[str, Any]:
    usual = {"type": "message", "channel": "C1", "ts": "10.0", "user": "U1", "text": "hi"}
    return {"type": "events_api", "payload": {"event": {**usual, **event}}}


def said(**more: Any) -> Heard:
    heard = read(event(**more))
    assert isinstance(heard, Heard)
    return heard


def test_a_mention_names_its_agent_its_place_and_its_speaker() -> None:
    heard = said(text="<@UCLAUDE> fix &lt;this&gt;")

    assert heard.place == PlaceKey("slack", "C1:10.0")
    assert heard.message_id == "10.0"
    assert heard.speaker == Speaker("U1", "Ann")
    assert heard.mentions == ("claude",)
    assert heard.text == "@claude fix <this>"
    assert heard.title == "fix <this>"
    assert heard.link == "https://home.slack.com/archives/C1/p100"


def test_a_mention_and_the_message_that_it_came_with_are_the_same_event() -> None:
    assert said(text="<@UCLAUDE> hi") == said(type="app_mention", text="<@UCLAUDE> hi")


def test_two_mentions_address_two_agents_whoever_hears_them() -> None:
    assert said(text="<@UCODEX> and <@UCLAUDE>, go").mentions == ("codex", "claude")


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("<@UCLAUDE> stop", "stop"),
        ("<@UCLAUDE>, <@UCODEX>: stop all", "stop all"),
        ("!stop", "!stop"),
        ("Stop  all", "Stop  all"),
        ("stop", "stop"),
        ("stop it", ""),
        ("help", ""),
        ("<@U2> stop", ""),
    ],
)
def test_a_command_in_a_thread_is_called_or_mentioned(text: str, spoken: str) -> None:
    assert said(text=text, thread_ts="9.0").spoken == spoken


def test_people_talking_in_a_channel_are_of_no_concern() -> None:
    assert read(event(text="help")) is None
    assert read(event(text="!help")) is None


def test_a_reply_without_a_mention_is_overheard() -> None:
    assert said(thread_ts="9.0").overheard
    assert not said(thread_ts="9.0", text="<@UCODEX> hi").overheard


def test_a_direct_message_is_meant_for_the_agent() -> None:
    heard = said(channel="D1", channel_type="im", text="stop")

    assert heard.mentions == ("claude",)
    assert heard.spoken == "stop"


@pytest.mark.parametrize(
    "more",
    [
        {"user": "UCLAUDE", "bot_id": "B1"},
        {"user": "UCODEX", "bot_id": "B2"},
        {"user": "U9", "bot_id": "B9"},
        {"user": "", "subtype": "bot_message", "bot_id": "B9"},
        {"user": "USLACKBOT"},
        {"subtype": "channel_join"},
        {"type": "reaction_added"},
    ],
)
def test_bots_and_what_is_no_message_are_ignored(more: dict[str, Any]) -> None:
    assert read(event(text="<@UCLAUDE> hi", **more)) is None


def test_a_bot_that_was_allowed_by_id_is_heard_as_a_bot() -> None:
    frame = event(text="<@UCLAUDE> deploy failed", user="", bot_id="B9", username="ci")

    heard = read(frame, bots=("B9",))

    assert isinstance(heard, Heard)
    assert heard.speaker == Speaker("B9", "ci", "bot")


FORWARDED = {
    "is_share": True,
    "author_name": "Bob",
    "channel_name": "alerts",
    "text": "it &amp; everything is down",
    "fallback": "[yesterday] it is down",
    "files": [{"id": "F7", "name": "log.txt", "mimetype": "text/plain"}],
}


def test_what_was_forwarded_comes_along_as_the_words_of_others() -> None:
    preview = {"from_url": "https://a.b", "text": "a page about it"}

    heard = said(text="<@UCLAUDE> see to this", attachments=[FORWARDED, preview])

    assert heard.text == "@claude see to this"
    assert heard.context == "Bob in #alerts: it & everything is down"
    assert heard.files == (File("log.txt", "text/plain", "slackF7/log.txt"),)


def test_a_forwarded_command_stops_nobody() -> None:
    heard = said(text="", thread_ts="9.0", attachments=[{**FORWARDED, "text": "!stop"}])

    assert heard.spoken == ""


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ({"user": "U1", "text": "look", "attachments": [FORWARDED]}, "look\nBob in #alerts: it &"),
        ({"user": "U1", "text": "look", "attachments": [{"text": "a preview"}]}, "look"),
        (
            {
                "bot_id": "B1",
                "text": "",
                "attachments": [
                    {"title": "Disk full", "fields": [{"title": "host", "value": "db1"}]},
                    {"fallback": "see the graph"},
                ],
            },
            "Disk full\nhost: db1\nsee the graph",
        ),
        (
            {
                "bot_id": "B1",
                "blocks": [
                    {"type": "header", "text": {"type": "plain_text", "text": "Failed"}},
                    {"type": "rich_text", "elements": [{"elements": [{"text": "in main"}]}]},
                ],
            },
            "Failed\nin main",
        ),
        ({"bot_id": "B1", "text": "Failed", "blocks": [{"text": "Failed"}]}, "Failed"),
    ],
)
def test_what_stands_in_a_thread_is_read_wherever_its_words_are(
    message: dict[str, Any], shown: str
) -> None:
    assert everything_in(message, KNOWN).startswith(shown)


def test_an_edit_and_a_deletion_change_the_message_they_are_about() -> None:
    before = {"ts": "8.0", "thread_ts": "7.0", "user": "U1", "text": "old"}
    edited = event(
        subtype="message_changed", message={**before, "text": "new"}, previous_message=before
    )
    deleted = event(subtype="message_deleted", previous_message=before)
    place = PlaceKey("slack", "C1:7.0")

    assert read(edited) == Changed(place, "C1:7.0", "8.0", Speaker("U1", "Ann"), "new")
    assert read(deleted) == Changed(place, "C1:7.0", "8.0", Speaker("U1", "Ann"), None)


def test_the_preview_of_a_link_is_no_edit_and_our_own_edits_are_not_heard() -> None:
    mine = {"ts": "8.0", "user": "UCLAUDE", "bot_id": "B1", "text": "a"}
    theirs = {"ts": "8.0", "user": "U1", "text": "a"}

    assert read(event(subtype="message_changed", message=theirs, previous_message=theirs)) is None
    assert (
        read(event(subtype="message_changed", message={**mine, "text": "b"}, previous_message=mine))
        is None
    )


def test_the_native_stop_button_is_the_command() -> None:
    heard = read(event(type="agent_session_stopped", thread_ts="9.0", event_ts="11.0", user="U2"))

    assert isinstance(heard, Heard)
    assert (heard.spoken, heard.mentions, heard.speaker.name) == ("stop", ("claude",), "Bob")
    assert heard.place == PlaceKey("slack", "C1:9.0")


def press(value: str) -> dict[str, Any]:
    payload = {
        "type": "block_actions",
        "user": {"id": "U2"},
        "channel": {"id": "C1"},
        "message": {"ts": "12.0", "thread_ts": "9.0"},
        "actions": [{"value": value, "action_ts": "13.0"}],
    }
    return {"type": "interactive", "envelope_id": "e", "payload": payload}


def test_a_button_answers_its_ask_by_the_id_of_the_option() -> None:
    assert read(press(SEAL.close("ask", 7, "allow"))) == Answered(7, "allow", Speaker("U2", "Bob"))


def pick(name: str, value: str) -> dict[str, Any]:
    frame = press("")
    picked = {"text": {"type": "plain_text", "text": "x"}, "value": value}
    action = {"type": "static_select", "action_id": name, "action_ts": "13.0"}
    frame["payload"]["actions"] = [{**action, "selected_option": picked}]
    return frame


def test_what_is_picked_from_a_list_answers_the_ask_that_the_list_is_sealed_for() -> None:
    heard = read(pick(SEAL.close("choice", 7), "acme/app"))

    assert heard == Answered(7, "acme/app", Speaker("U2", "Bob"))


@pytest.mark.parametrize("name", ["", "choice.7", Seal("another key").close("choice", 7)])
def test_a_list_that_the_bridge_did_not_write_decides_nothing(name: str) -> None:
    with pytest.raises(DeliveryUnreadable):
        read(pick(name, "acme/app"))


def test_a_list_answers_nothing_but_choices() -> None:
    assert read(press(SEAL.close("choice", 7))) is None


def test_a_button_can_be_a_command() -> None:
    heard = read(press(SEAL.close("command", "queue now")))

    assert isinstance(heard, Heard)
    assert (heard.spoken, heard.message_id) == ("queue now", "13.0")


@pytest.mark.parametrize("value", ["", "ask.7", Seal("another key").close("ask", 7, "allow")])
def test_a_button_that_the_bridge_did_not_write_decides_nothing(value: str) -> None:
    with pytest.raises(DeliveryUnreadable):
        read(press(value))


@pytest.mark.parametrize(
    ("markup", "shown"),
    [
        ("<https://a.b/c>", "https://a.b/c"),
        ("<https://a.b|docs>", "docs (https://a.b)"),
        ("<mailto:a@b.c|a@b.c>", "a@b.c"),
        ("<#C9|general> <!here> <!subteam^S1|@team>", "#general @here @team"),
        ("<#C9> and <#C8|>", "#C9 and #C8"),
        ("<@U2> <@U77|zed> <@U78>", "@Bob @zed @U78"),
        ("a &amp;&amp; b &lt; c", "a && b < c"),
    ],
)
def test_markup_is_written_as_people_read_it(markup: str, shown: str) -> None:
    assert plain(markup, KNOWN) == shown


def test_files_are_named_by_where_they_will_be_kept() -> None:
    message = {
        "files": [
            {"id": "F1", "name": "../a b.png", "mimetype": "image/png"},
            {"id": "F2", "mode": "tombstone"},
            {"id": "../F3", "name": "x"},
        ]
    }

    assert files_of(message) == (File("../a b.png", "image/png", "slackF1/_a_b.png"),)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "payload",
                    "event",
                    "text",
                    "user",
                    "channel",
                    "ts",
                    "message",
                    "previous_message",
                    "subtype",
                    "files",
                    "attachments",
                    "blocks",
                    "actions",
                    "bot_id",
                ]
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=20,
)


@given(JSON, st.sampled_from(["message", "app_mention", "agent_session_stopped"]))
def test_no_frame_breaks_the_reader(inner: Any, kind: str) -> None:
    more = inner if isinstance(inner, dict) else {"text": inner}
    for frame in (
        inner,
        event(**{**more, "type": kind}),
        {"type": "interactive", "payload": inner},
    ):
        with suppress(DeliveryUnreadable):
            read(frame)
