"""Knows our own Slack apps and the people of a workspace, and looks up what stored frames lack."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from itsdangerous import BadData, URLSafeSerializer

from app.clock import Clock
from app.errors import DeliveryUnreadable, PostError, ServiceRefused
from app.model.inbound import Inbound
from app.model.keys import PlaceKey, adapter_name
from app.retry import Retries
from app.services.common.people import Members, PlatformAgents, Profile
from app.services.slack import events, wording
from app.services.slack.api import TRANSIENT, SlackApi, SlackRefused, SlackUncertain
from app.services.slack.text import Event


@dataclass(frozen=True, slots=True)
class SlackIdentity:
    """One agent's ids on Slack."""

    user: str
    """The id by which people mention it."""
    bot: str
    team: str
    home: str
    """The address of the workspace."""
    scopes: frozenset[str]


async def identify(api: SlackApi, agent: str, suffix: str) -> SlackIdentity:
    """Ask Slack which app a bot token belongs to.

    Raises:
        ServiceRefused: Slack rejects the token.
        PostError: Slack does not answer now.
    """
    try:
        answer = await api.call("auth.test")
    except SlackRefused as error:
        raise ServiceRefused(
            adapter_name("slack", agent),
            f"Slack rejected its bot token ({error.error})",
            f"Copy its app's Bot User OAuth Token into SLACK_BOT_TOKEN{suffix} again.",
        ) from error
    return SlackIdentity(
        user=answer["user_id"],
        bot=answer.get("bot_id", ""),
        team=answer.get("team_id", ""),
        home=answer.get("url", ""),
        scopes=frozenset(filter(None, answer["scopes"].replace(" ", "").split(","))),
    )


class Colleagues(PlatformAgents[SlackIdentity]):
    """All agents on Slack, shared by all adapters."""

    def __init__(self, agents: Iterable[str], absent: Mapping[str, str] | None = None) -> None:
        """Know the agents that are set up, and the user ids of those that were."""
        super().__init__(agents)
        self.agents = {user: agent for agent, user in (absent or {}).items()}
        """Agents by the user ids that people mention."""

    def add(self, agent: str, identity: SlackIdentity) -> None:
        """Set an agent's identity."""
        self.agents[identity.user] = agent
        super().add(agent, identity)


class Seal:
    """Signs button values, so that only the bridge's own buttons decide anything."""

    def __init__(self, secret_key: str) -> None:
        self._serializer = URLSafeSerializer(secret_key, salt="slack button")

    def close(self, *values: str | int) -> str:
        """Write values into a button."""
        return str(self._serializer.dumps(list(values)))

    def open(self, sealed: str) -> list[Any]:
        """Read them back.

        Raises:
            DeliveryUnreadable: the bridge did not write this.
        """
        try:
            values: list[Any] = self._serializer.loads(sealed)
        except BadData as error:
            raise DeliveryUnreadable("this bridge did not make this button") from error
        return values


logger = logging.getLogger(__name__)


CACHE_SECONDS: Final = 600.0
"""Cache time: a member who becomes a guest can act for ten minutes more at most."""
NAME_SECONDS: Final = 2.0
"""Time limit to look up names for a stored message: a person waits for the agent."""


class People:
    """The people of one workspace, as one app sees them."""

    def __init__(self, api: SlackApi, clock: Clock) -> None:
        self.api = api
        self.clock = clock
        self._members = Members(self._look_up, clock, seconds=CACHE_SECONDS)

    async def person(self, user: str, team: str) -> Profile:
        """Return what Slack says about a user.

        Raises:
            PostError: Slack does not say.
        """
        return await self._members.find((user, team))

    async def names(self, users: Collection[str], team: str) -> dict[str, str]:
        """Return the names of some users, as far as Slack gives them in time."""
        found: dict[str, str] = {}

        async def look_up(user: str) -> None:
            try:
                found[user] = (await self.person(user, team)).name
            except PostError as error:
                logger.info("%s", error)

        try:
            async with asyncio.timeout(NAME_SECONDS), asyncio.TaskGroup() as group:
                for user in users:
                    group.create_task(look_up(user))
        except TimeoutError:
            logger.info("Slack took too long to name %s", ", ".join(set(users) - found.keys()))
        return found

    async def _look_up(self, key: tuple[str, str]) -> Profile:
        user, team = key
        try:
            answer = await self.api.read("users.info", user=user)
        except SlackRefused as error:
            if error.error not in {"user_not_found", "user_not_visible"}:
                raise
            return Profile(wording.NOT_FOUND, user)
        return read_member(answer["user"], team)


def read_member(user: dict[str, Any], team: str) -> Profile:
    """Read what Slack says about a user: the name, and whether it is a full member of a team."""
    profile = user.get("profile") or {}
    names = (profile.get("display_name"), profile.get("real_name"), user.get("real_name"))
    name = str(next(filter(None, names), None) or user.get("name") or user["id"])
    teams = {user.get("team_id"), *((user.get("enterprise_user") or {}).get("teams") or ())}
    if user.get("is_stranger") or team not in teams:
        return Profile(wording.FROM_ANOTHER_WORKSPACE, name)
    if user.get("is_restricted") or user.get("is_ultra_restricted"):
        return Profile(wording.GUEST, name)
    return Profile(wording.NOT_ACTIVE if user.get("deleted") else None, name)


LOOK_UP_SECONDS: Final = 2.0
"""Time limit of one look-up for a stored message: a person waits for the agent."""
RETRY_PAUSES: Final = (1.0, 1.0)
"""Seconds between look-ups: one hiccup is no reason to refuse a message or to drop a file."""


class Completion:
    """The look-ups of one agent's app."""

    def __init__(
        self,
        people: People,
        reader: events.FrameReader,
        colleagues: Colleagues,
        me: Callable[[], Awaitable[SlackIdentity]],
    ) -> None:
        self._people = people
        self._reader = reader
        self.colleagues = colleagues
        self._me = me

    async def complete(self, origin: events.Origin) -> Inbound | None:
        """Read a frame again, with the names and files that it lacks."""
        frame = await self._with_files(origin.frame)
        names = await self.names(events.users_in(frame))
        return self._reader.interpret(frame, replace(origin.known, names=names))

    async def names(self, users: Iterable[str]) -> dict[str, str]:
        """Look up the names of people, as far as Slack answers in time."""
        people = [user for user in users if user not in self.colleagues.agents]
        try:
            async with asyncio.timeout(LOOK_UP_SECONDS):
                me = await self._me()
        except (PostError, ServiceRefused, TimeoutError) as error:
            logger.info("cannot look up names: %s", error)
            return {}
        return await self._people.names(people, me.team)

    async def _with_files(self, frame: Event) -> Event:
        """Add a message's files and forwarded messages to its mention, which lacks them."""
        payload = frame["payload"]
        event = payload.get("event") or {}
        if event.get("type") != "app_mention":
            return frame
        try:
            message = await self._message(event)
        except PostError as error:
            logger.warning("cannot read the files of a mention: %s", error)
            return frame
        found = {key: message[key] for key in ("files", "attachments") if key in message}
        return {**frame, "payload": {**payload, "event": {**event, **found}}}

    async def _message(self, event: Event) -> Event:
        """Read the message that a mention is in."""
        retries = Retries(self._people.clock, RETRY_PAUSES)
        while True:
            try:
                async with asyncio.timeout(LOOK_UP_SECONDS):
                    answer = await self._people.api.read(
                        "conversations.replies",
                        channel=event["channel"],
                        ts=events.thread_of(event),
                        oldest=event["ts"],
                        latest=event["ts"],
                        inclusive="true",
                        limit=2,  # the first message of the thread comes with it
                    )
            except TRANSIENT as error:
                await retries.wait(error)
            except TimeoutError:
                await retries.wait(SlackUncertain("conversations.replies", "TimeoutError"))
            else:
                return next((each for each in answer["messages"] if each["ts"] == event["ts"]), {})


NOT_THERE: Final = {"not_in_channel", "channel_not_found"}


class Shortcuts:
    """The uses of one app's message shortcut."""

    def __init__(self, api: SlackApi) -> None:
        self._api = api
        self._absent: set[PlaceKey] = set()

    async def check(self, frame: Event) -> None:
        """Tell the person who used the shortcut if the agent cannot answer there."""
        payload = frame["payload"]
        if not events.is_shortcut(payload):
            return
        channel, thread = payload["channel"]["id"], events.thread_of(payload["message"])
        try:
            await self._api.read("conversations.replies", channel=channel, ts=thread, limit=1)
        except PostError as error:
            if not isinstance(error, SlackRefused):
                logger.info("%s", error)
            elif error.error in NOT_THERE:
                self._absent.add(events.place_of(channel, thread))
                words = wording.CANNOT_ANSWER.format(why=wording.NOT_IN_CHANNEL)
                await self._api.respond(str(payload.get("response_url") or ""), words)

    def refusal(self, place: PlaceKey) -> str | None:
        """Say why the agent cannot answer where the shortcut was used just now."""
        if place not in self._absent:
            return None
        self._absent.remove(place)
        return wording.NOT_IN_CHANNEL
