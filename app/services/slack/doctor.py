"""Checks an agent's Slack app for `doctor`, and tries on Slack what the bridge assumes about it.

Slack shows an app's event subscriptions only to the person who made the app, with their own token,
so the stored deliveries tell which ones it has. What `doctor --live` posts is in one thread of the
app's own; it is deleted at the end, the last first.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import orjson

from app.errors import PostError, ServiceRefused, StoreUnavailable
from app.model.inbound import Delivery
from app.model.keys import adapter_name
from app.services.common.live import (
    LiveStep,
    LiveVerdict,
    Seen,
    compare,
    no_credentials,
    wrong_place,
)
from app.services.service import CheckContext, Finding, LiveRequest, ok, problem, warning
from app.services.slack.api import SlackApi, SlackRefused
from app.services.slack.events import MISSED
from app.services.slack.manifest import EVENTS, OPTIONAL, SCOPES
from app.services.slack.people import SlackIdentity, identify
from app.services.slack.settings import NAME, SlackCredentials, SlackSettings
from app.services.slack.socket import Socket

IN_CHANNELS: Final = ("message.channels", "message.groups")
_MESSAGES: Final = {
    "channel": "message.channels",
    "group": "message.groups",
    "im": "message.im",
    "mpim": "message.mpim",
}


def events_in(deliveries: Iterable[Delivery]) -> list[str]:
    """List the subscriptions that these deliveries prove, in the order of the manifest."""
    found = {_event_of(each) for each in deliveries if not each.delivery_id.startswith(MISSED)}
    return [event for event in EVENTS if event in found]


def lacks_messages(heard: Iterable[str]) -> bool:
    """Tell whether an app gets mentions without their messages, though Slack sends both."""
    return "app_mention" in heard and not set(heard) & set(IN_CHANNELS)


def _event_of(delivery: Delivery) -> str:
    try:
        frame = orjson.loads(delivery.body)
    except orjson.JSONDecodeError:
        return ""
    payload = frame.get("payload") if isinstance(frame, Mapping) else None
    event = payload.get("event") if isinstance(payload, Mapping) else None
    if not isinstance(event, Mapping):
        return ""
    kind = str(event.get("type", ""))
    return _MESSAGES.get(str(event.get("channel_type")), "") if kind == "message" else kind


LOOKED_AT: Final = 2_000
"""Deliveries to read: some days of a busy channel, and still fast."""

SESSIONS_REMEDY: Final = (
    "The thread shows a simpler status, without the Stop button; `!stop` works. For the button, "
    "turn on Agents in the app's settings (this cannot be undone), or ask Slack to enable it."
)
_NO_SESSIONS: Final = {
    "feature_disabled": "this workspace has no agent sessions (feature_disabled)",
    "not_an_agent": "its app is not declared as an agent (not_an_agent)",
    "unknown_method": "this Slack has no agent sessions (unknown_method)",
}


async def checks(context: CheckContext) -> AsyncIterator[Finding]:
    """Check the app of every agent that has one."""
    configuration = context.configuration
    url = configuration.settings_of(SlackSettings).api_url
    owners = configuration.credentials_of(SlackCredentials)
    for agent, credentials in owners.items():
        entry = configuration.agents[agent]
        yield await _check(url, credentials, entry.name, entry.setting(""))
    async for finding in check_events(context, owners):
        yield finding


async def check_events(context: CheckContext, agents: Iterable[str]) -> AsyncIterator[Finding]:
    """Report which events each app received, since Slack does not list its subscriptions."""
    try:
        with context.reading() as stores:
            if stores is None:
                return
            for agent in agents:
                kept = await stores.deliveries.kept(adapter_name(NAME, agent), limit=LOOKED_AT)
                name = context.configuration.agents[agent].name
                yield _judge_events(name, events_in(kept))
    except StoreUnavailable:
        return  # the check of the database reports it


def _judge_events(name: str, heard: Sequence[str]) -> Finding:
    what = f"slack events, {name}"
    if lacks_messages(heard):
        return warning(
            what,
            "mentions arrive, but channel messages do not: the agent misses replies in threads",
            "In the app's settings, under Event Subscriptions, add "
            f"{', '.join(IN_CHANNELS)} and every other event that "
            f"`agent-bridge manifest slack {name}` lists, then reinstall the app.",
        )
    silent = [event for event in EVENTS if event not in heard]
    if not silent:
        return ok(what, "every kind arrived recently")
    return ok(
        what,
        f"arrived recently: {', '.join(heard) or 'none'}; not yet: {', '.join(silent)}. Slack does "
        "not list an app's events: subscribe to any missing event in the app's settings",
    )


async def _check(url: str, credentials: SlackCredentials, name: str, suffix: str) -> Finding:
    what = f"slack, {name}"
    api = SlackApi(url, credentials.bot_token.get_secret_value())
    socket = Socket(name, suffix, credentials.app_token.get_secret_value())
    try:
        identity = await identify(api, name, suffix)
        await socket.try_out(api.client)
        lack = await _find_lack(api)
    except ServiceRefused as error:
        return problem(what, error.cause, error.remedy)
    except PostError as error:
        return warning(what, str(error), "Check the network and SLACK_API_URL, then try again.")
    finally:
        await api.close()
    lacking = sorted(set(SCOPES) - identity.scopes)
    if identity.scopes and lacking:
        judge = warning if set(lacking) <= OPTIONAL else problem
        return judge(
            what,
            f"its app lacks the scopes {', '.join(lacking)}",
            f"Add the scopes that `agent-bridge manifest slack {name}` lists, then reinstall it.",
        )
    words = f"is {identity.user} in {identity.home or identity.team}, with a socket"
    if lack in _NO_SESSIONS:
        return warning(what, f"{words}, but {_NO_SESSIONS[lack]}", SESSIONS_REMEDY)
    return ok(what, words)


async def _find_lack(api: SlackApi) -> str:
    """Ask Slack why the app has no agent sessions; nothing is made, there is no such channel."""
    try:
        await api.call(
            "agents.sessions.setStatus", channel_id="C0", thread_ts="1.0", status="active"
        )
    except SlackRefused as error:
        return error.error
    return ""


MINUTES: Final = 6.0
"""How long a stream is kept alive: a minute longer than it is said to live."""
APPEND_SECONDS: Final = 20.0
"""Pause between two appends: often enough that the stream is never idle for long."""
MARKDOWN_CHARACTERS: Final = 9_800
CONTEXT_CHARACTERS: Final = 1_000
CARD: Final = "live-1"
TITLE: Final = "Run a && b < c *d*"
PLACE: Final = re.compile(r"([CGD][A-Z0-9]+)(?::([UW][A-Z0-9]+))?")
WORDS: Final = "Agent Bridge tries how Slack behaves. It deletes this thread itself."


@asynccontextmanager
async def live(request: LiveRequest) -> AsyncIterator[Sequence[LiveStep]]:
    """Open Slack as an agent's app, and list the steps.

    Raises:
        ConfigurationError: this is no channel, or the agent is not on Slack.
        BridgeError: Slack does not accept the app.
    """
    configuration, agent = request.context.configuration, request.agent
    credentials = configuration.credentials_of(SlackCredentials).get(agent)
    if credentials is None:
        raise no_credentials(agent)
    place = PLACE.fullmatch(request.place)
    if place is None or not (place[2] or place[1].startswith("D")):
        raise wrong_place("CHANNEL:USER, such as C024BE91L:U024BE7LH; the user sees the streams")
    url = configuration.settings_of(SlackSettings).api_url
    api = SlackApi(url, credentials.bot_token.get_secret_value(), request.context.vault)
    try:
        me = await identify(api, agent, configuration.agents[agent].setting(""))
        trial = _Trial(request, api, me, place[1], place[2])
        yield trial.steps()
    finally:
        await api.close()


@dataclass(slots=True)
class _Trial:
    """One thread in one channel."""

    request: LiveRequest
    api: SlackApi
    me: SlackIdentity
    channel: str
    user: str | None
    thread: str = ""

    def steps(self) -> Sequence[LiveStep]:
        """List what is tried."""
        return (
            LiveStep(
                "update",
                f"a message with {MARKDOWN_CHARACTERS:,} characters of Markdown and three contexts "
                f"of {CONTEXT_CHARACTERS:,} is refused: all blocks together are limited",
                self._update,
            ),
            LiveStep("title", "titles of cards are plain text, stored as sent", self._title),
            LiveStep("details", "details of a card are appended, not replaced", self._details),
            LiveStep(
                "stop",
                "a card that is in progress when its stream stops is stored as an error",
                self._stop,
            ),
            LiveStep("status", "a thread can be set to processing, and stays so", self._status),
            LiveStep(
                "stream",
                "a stream ends five minutes after it began, however much is appended",
                self._stream,
                minutes=MINUTES,
            ),
        )

    async def _update(self) -> Seen:
        thread = await self._open_thread()
        ts = await self._send("chat.postMessage", thread_ts=thread, text="A message to be edited.")
        text = {"type": "mrkdwn", "text": "y" * CONTEXT_CHARACTERS}
        blocks = [
            {"type": "markdown", "text": "x" * MARKDOWN_CHARACTERS},
            *({"type": "context", "elements": [text]} for _ in range(3)),
        ]
        try:
            await self.api.call(
                "chat.update", channel=self.channel, ts=ts, text="long", blocks=blocks
            )
        except SlackRefused as error:
            return compare(f"Slack refused it: {error.error}", as_assumed=True)
        return compare("Slack took it", as_assumed=False)

    async def _title(self) -> Seen:
        ts = await self._start([_card(title=TITLE, status="complete")])
        await self._end(ts)
        title = (await self._read_card(ts)).get("title")
        return compare(f"{TITLE!r} is stored as {title!r}", as_assumed=title == TITLE)

    async def _details(self) -> Seen:
        ts = await self._start([_card(details="one")])
        await self._append(ts, [_card(details="two", status="complete")])
        await self._end(ts)
        found = str((await self._read_card(ts)).get("details"))
        as_assumed = "one" in found and "two" in found
        return compare(f"after 'one' and 'two' the card says {found!r}", as_assumed=as_assumed)

    async def _stop(self) -> Seen:
        ts = await self._start([_card()])
        await self._end(ts)
        status = (await self._read_card(ts)).get("status")
        return compare(f"the card is stored as {status!r}", as_assumed=status == "error")

    async def _status(self) -> Seen:
        thread = await self._open_thread()
        given: dict[str, Any] = {"channel_id": self.channel, "thread_ts": thread}

        async def end() -> None:
            await self.api.call("agents.sessions.setStatus", **given, status="active")

        try:
            await self.api.call("agents.sessions.setStatus", **given, status="processing")
        except SlackRefused as error:
            return compare(f"Slack refused it: {error.error}", as_assumed=False)
        self.request.undo.add("the status of the thread", end)
        words = "Slack took it; look whether the thread shows it, and for how long if it is left"
        return Seen(words, LiveVerdict.LOOK)

    async def _stream(self) -> Seen:
        clock = self.request.clock
        ts, began = await self._start([_card()]), clock.monotonic()
        appended = 0
        while (age := clock.monotonic() - began) < MINUTES * 60:
            self.request.progress(f"the stream is {age:.0f} s old; look at it, and who is notified")
            await clock.sleep(APPEND_SECONDS)
            try:
                await self._append(ts, [{"type": "markdown_text", "text": "One more line.\n"}])
            except SlackRefused as error:
                age = clock.monotonic() - began
                status = (await self._read_card(ts)).get("status")
                words = (
                    f"after {age:.0f} s and {appended} appends Slack refused the next: "
                    f"{error.error}; its card is stored as {status!r}"
                )
                return compare(words, as_assumed=280 <= age <= 320)
            appended += 1
        await self._end(ts)
        return compare(f"it took {appended} appends in {MINUTES:g} minutes", as_assumed=False)

    async def _open_thread(self) -> str:
        """Return the thread that all steps write to; the first one makes it."""
        if not self.thread:
            self.thread = await self._send("chat.postMessage", text=WORDS)
        return self.thread

    async def _start(self, chunks: list[dict[str, Any]]) -> str:
        return await self._send(
            "chat.startStream",
            thread_ts=await self._open_thread(),
            recipient_user_id=self.user,
            recipient_team_id=self.me.team if self.user else None,
            task_display_mode="timeline",
            chunks=chunks,
        )

    async def _send(self, method: str, **given: Any) -> str:
        async def make() -> str:
            answer = await self.api.call(method, channel=self.channel, **given)
            return str(answer["ts"])

        return await self.request.undo.make("a message", make(), self._delete)

    async def _delete(self, ts: str) -> None:
        try:
            await self.api.call("chat.delete", channel=self.channel, ts=ts)
        except SlackRefused as error:
            if error.error == "message_not_found":
                return
            # A message cannot be deleted while it is still a stream.
            await self._end(ts)
            await self.api.call("chat.delete", channel=self.channel, ts=ts)

    async def _append(self, ts: str, chunks: list[dict[str, Any]]) -> None:
        await self.api.call("chat.appendStream", channel=self.channel, ts=ts, chunks=chunks)

    async def _end(self, ts: str) -> None:
        await self.api.call("chat.stopStream", channel=self.channel, ts=ts)

    async def _read_card(self, ts: str) -> dict[str, Any]:
        """Read the card of a message as Slack stores it."""
        thread = await self.api.replies(self.channel, self.thread)
        found = [each.get("blocks") or [] for each in thread if each["ts"] == ts]
        return _find_card(found[0]) if found else {}


def _find_card(blocks: list[dict[str, Any]]) -> dict[str, Any]:
    """Find the card among blocks; it may be inside of a plan."""
    for block in blocks:
        if CARD in (block.get("task_id"), block.get("id")):
            return block
        if found := _find_card(block.get("tasks") or []):
            return found
    return {}


def _card(**fields: str) -> dict[str, Any]:
    return {
        "type": "task_update",
        "id": CARD,
        "title": "A card",
        "status": "in_progress",
        **fields,
    }
