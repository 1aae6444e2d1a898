"""Decides what follows from what people say: who may, who acts, and what all others are told.

What one message leads to is one commit, and nobody is told of anything before it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from app.core.adapters import Adapter, GatheringAdapter, InvitedAdapter, RereadingAdapter
from app.core.clock import persist
from app.core.commands import Command, parse
from app.core.consent.ledger import Ledger
from app.core.inbound import (
    Accepted,
    Answered,
    AskAnswer,
    Changed,
    Corrected,
    Decision,
    Delivery,
    DeliveryState,
    Heard,
)
from app.core.intake.access import UNCHECKED, Access
from app.core.intake.floor import Floor, decide
from app.core.keys import PlaceKey, SessionKey, adapter_name
from app.core.ports import Clock
from app.core.posts import NewPost, PostContent
from app.core.session_manager import SessionManager
from app.core.stores.inbox import IntakeStore
from app.core.types import BridgeSessionRequest, Session, Speaker, Untagged
from app.errors import BridgeError, PostError, SpeakerUnknown

logger = logging.getLogger(__name__)

TOO_LATE = "Too late: the agent is already at work on your message as it was."
UNREAD = "Your change could not be read, so your message counts as it was; please say it again."
ANSWERS = "answers an ask"
WHISPER_SECONDS = 10.0
"""What a platform may take to tell one person something; nothing depends on it."""
ASK_AGAIN_SECONDS = 60.0
"""How often a platform is asked who somebody is, as long as it cannot tell."""
HELD_SECONDS = 6 * 86_400.0
"""How long a message is kept back for that: whoever waited longer has given up."""


class Reception:
    """Where everything said in a place is decided on, for all adapters."""

    def __init__(
        self,
        decisions: IntakeStore,
        manager: SessionManager,
        ledger: Ledger,
        *,
        adapters: Mapping[str, Adapter],
        access: Access,
        untagged: Untagged,
        clock: Clock,
    ) -> None:
        self._decisions = decisions
        self._manager = manager
        self._ledger = ledger
        self._adapters = adapters
        self._access = access
        self._untagged = untagged
        self._clock = clock

    def untagged(self, place: PlaceKey) -> Floor:
        """Tell who would answer a message that names nobody, and why."""
        nobody = Heard(place, place.name, "", Speaker("", ""), "")
        return decide(nobody, self._decisions.place(place), self._untagged)

    async def decide(self, delivery: Delivery, heard: Heard) -> Accepted | str:
        """Decide on a message and write that down; a reason if there is nothing to write."""
        if self._decisions.decided(heard.place, heard.message_id):
            return "this message was decided on before"
        adapter = self._adapters[delivery.adapter]
        if isinstance(adapter, GatheringAdapter):
            heard = storable(await adapter.gather(heard))
        view = self._decisions.place(heard.place)
        floor = decide(heard, view, self._untagged)
        if heard.overheard and not floor.agents and not view.present:
            return "said to nobody here"
        command = None if heard.speaker.kind == "agent" else parse(heard.words)
        if command is not None:
            return await self._carry_out(command, delivery, heard, floor)
        return await self._hand_on(delivery, heard, floor)

    async def correct(
        self, delivery: Delivery, changed: Changed
    ) -> tuple[DeliveryState, str] | None:
        """Let what waits follow its speaker's second thoughts; say when it is too late.

        Returns what became of the delivery, if nothing was written.
        """
        adapter = self._adapters[delivery.adapter]
        key = SessionKey(changed.place.service, changed.external, adapter.agent)
        try:
            whole = await self._reread(adapter, changed)
        except PostError as error:
            await self._whisper(adapter, key, changed.speaker, UNREAD)
            return "failed", f"a change could not be read: {error}"
        if whole is None:
            return "done", "another agent's app tells it"
        corrected = await persist(self._clock, self._decisions.correct, delivery.seq, whole)
        self._manager.corrected(changed.place, corrected)
        if corrected.outcome == "late" and self._tells(adapter, changed.place, corrected):
            await self._whisper(adapter, key, changed.speaker, TOO_LATE)
        return None

    async def answer(self, answered: Answered) -> str | None:
        """Give an answer to the ledger, if it is from somebody who may trigger the agent.

        Returns why it does not count, if so.
        """
        try:
            why = await self._refusal_of(answered)
            if why is None:
                await persist(
                    self._clock,
                    self._ledger.answer,
                    answered.ask,
                    self._ledger.option(answered.ask, answered.option),
                    answered.speaker.name,
                    speaker=answered.speaker.id,
                )
        except BridgeError as error:
            why = str(error)
        return why

    async def turn_down(self, delivery: Delivery, answered: Answered, why: str) -> None:
        """Tell whoever gave an answer that it does not count."""
        key = self._ledger.surface(answered.ask)
        if key is not None:
            words = f"This does not count: {why}."
            await self._whisper(self._adapters[delivery.adapter], key, answered.speaker, words)

    async def give_up(self, delivery: Delivery, heard: Heard, cause: str) -> str:
        """Write down that a message led to nothing, and tell the place; returns the words."""
        words = f"This message could not be dealt with ({cause}). Please send it again."
        notice = _notice(delivery, heard, "bridge", words)
        decision = Decision(delivery.seq, heard, "failed", cause, posts=(notice,))
        await self._manager.admit(decision)
        return words

    async def _carry_out(
        self, command: Command, delivery: Delivery, heard: Heard, floor: Floor
    ) -> Accepted:
        """Let a command count for those agents that its speaker may trigger."""
        if command.name == "stop" and not heard.mentions:
            at_work = self._manager.at_work(heard.place)
            floor = Floor(at_work, "an untagged stop stops everybody")
        allowed, posts = await self._admitted(delivery, heard, floor)
        if not floor.agents:
            posts = await self._refused_here(delivery, heard)
        if heard.pressed and posts and not allowed:
            return await self._refuse_in_private(delivery, heard, posts)
        return await self._manager.command(command, delivery, heard, allowed, posts)

    async def _hand_on(self, delivery: Delivery, heard: Heard, floor: Floor) -> Accepted:
        """Give words to those agents that their speaker may trigger, or to what they ask."""
        allowed, posts = await self._admitted(delivery, heard, floor)
        everybody = self._manager.sessions(heard.place) if allowed else ()
        here = [each for each in everybody if each.key.agent in allowed]
        answers = self._answers(heard, here)
        answering = {answer.request.agent_name for answer in answers}
        waiting = [each for each in here if each.key.agent not in answering]
        posts += self._reminders(delivery, heard, waiting)
        outcome: DeliveryState = "refused" if floor.agents and not allowed else "done"
        requests = tuple(_request(heard, agent) for agent in allowed if agent not in answering)
        reason = floor.reason if allowed or not floor.agents else "refused"
        silence = "" if floor.agents or heard.speaker.kind == "agent" else floor.reason
        accepted = await self._manager.admit(
            Decision(
                delivery.seq,
                heard,
                outcome,
                ANSWERS if answers else reason,
                requests,
                posts,
                silence=silence,
                answers=answers,
            )
        )
        self._ledger.settle(accepted.answered)
        return accepted

    def _answers(self, heard: Heard, sessions: Sequence[Session]) -> tuple[AskAnswer, ...]:
        """Find the asks that a message answers as a whole: on some services the usual way."""
        if heard.speaker.kind == "agent" or heard.files:
            return ()
        found = self._ledger.meant(sessions, heard.words)
        return tuple(
            AskAnswer(ask, answer, _request(heard, agent)) for agent, (ask, answer) in found.items()
        )

    def _reminders(
        self, delivery: Delivery, heard: Heard, sessions: Sequence[Session]
    ) -> tuple[NewPost, ...]:
        """Remind people who speak on of what agents must be told before they can begin."""
        unmet = {each.key.agent: self._ledger.unmet(each.id) for each in sessions}
        return tuple(
            _notice(delivery, heard, agent, words) for agent, words in unmet.items() if words
        )

    async def _admitted(
        self, delivery: Delivery, heard: Heard, floor: Floor
    ) -> tuple[tuple[str, ...], tuple[NewPost, ...]]:
        """Sort the addressed agents into those that act and words about those that do not."""
        allowed: list[str] = []
        posts: list[NewPost] = []
        for agent in floor.agents:
            adapter = self._adapters.get(adapter_name(heard.place.service, agent))
            away = await self._absence(adapter, delivery, heard)
            if adapter is None or away is not None:
                words = f"{agent} cannot be reached here{away or ''}."
                posts.append(_notice(delivery, heard, agent, words))
                continue
            if heard.withdrawn:
                allowed.append(agent)
                continue
            why = await self._refusal(delivery, adapter, heard)
            if why is None:
                allowed.append(agent)
            elif heard.speaker.kind == "person":  # two bots would talk to each other for ever
                say = _notice if why == UNCHECKED else _refusal
                posts.append(say(delivery, heard, agent, f"{agent} did not act: {why}."))
        return tuple(allowed), tuple(posts)

    async def _absence(
        self, adapter: Adapter | None, delivery: Delivery, heard: Heard
    ) -> str | None:
        """Say why an agent that another one heard being addressed is not there itself."""
        if not isinstance(adapter, InvitedAdapter) or adapter.service_name == delivery.adapter:
            return None
        why = await adapter.absence(heard)
        return None if why is None else f": {why}"

    async def _refuse_in_private(
        self, delivery: Delivery, heard: Heard, posts: Sequence[NewPost]
    ) -> Accepted:
        """Tell whoever pressed a button that it does not count, every time and nobody else."""
        refused = Decision(delivery.seq, heard, "refused", "refused")
        accepted = await self._manager.admit(refused)
        adapter = self._adapters[delivery.adapter]
        for post in () if accepted.repeated else posts:
            await self._whisper(adapter, post.target, heard.speaker, post.content.note)
        return accepted

    async def _refused_here(self, delivery: Delivery, heard: Heard) -> tuple[NewPost, ...]:
        """Refuse a command that is for the place itself, if its speaker may trigger nobody."""
        adapter = self._adapters[delivery.adapter]
        why = await self._refusal(delivery, adapter, heard)
        return () if why is None else (_refusal(delivery, heard, "bridge", f"Not done: {why}."),)

    async def _refusal(self, delivery: Delivery, adapter: Adapter, heard: Heard) -> str | None:
        """Find out why a speaker may not; where nobody can tell or be told, the message waits.

        It stays in the inbox meanwhile, and so does what is said after it in the same place. Where
        somebody works, nothing waits: the next message may be a stop.
        """
        until = delivery.received_at + HELD_SECONDS
        while True:
            try:
                return await self._access.refusal(adapter, heard.speaker, heard.place)
            except SpeakerUnknown as error:
                logger.warning("delivery %d of %s waits: %s", delivery.seq, delivery.adapter, error)
            if self._clock.now() >= until or self._manager.at_work(heard.place):
                return UNCHECKED
            await self._clock.sleep(ASK_AGAIN_SECONDS)

    async def _refusal_of(self, answered: Answered) -> str | None:
        session = self._ledger.session(answered.ask)
        adapter = self._adapters.get(session.key.adapter)
        if adapter is None:
            return f"{session.key.agent} is not here any more"
        return await self._access.refusal(adapter, answered.speaker, session.place)

    async def _reread(self, adapter: Adapter, changed: Changed) -> Changed | None:
        """Bring a message together of which a piece changed, if it was ever heard."""
        known = self._decisions.decided(changed.place, changed.message_id)
        if not known or not isinstance(adapter, RereadingAdapter):
            return changed
        return await adapter.reread(changed)

    def _tells(self, adapter: Adapter, place: PlaceKey, corrected: Corrected) -> bool:
        """Tell whether it is for this adapter to speak of an edit: every one here hears of it."""
        agents = {each.id: each.key.agent for each in self._manager.sessions(place)}
        return agents.get(corrected.turns[0].session, adapter.agent) == adapter.agent

    async def _whisper(
        self, adapter: Adapter, key: SessionKey, speaker: Speaker, words: str
    ) -> None:
        """Tell one person something; nobody waits for it, so it is tried once."""
        try:
            async with asyncio.timeout(WHISPER_SECONDS):
                await adapter.whisper(key, speaker, words)
        except Exception as error:  # noqa: BLE001 - it is decided, whoever could be told
            logger.info("%s could not be told in private: %s", speaker.id, error)


def storable(heard: Heard) -> Heard:
    """Replace halves of surrogate pairs, which JSON may carry and no database keeps."""
    speaker = replace(heard.speaker, id=_whole(heard.speaker.id), name=_whole(heard.speaker.name))
    return replace(
        heard,
        speaker=speaker,
        text=_whole(heard.text),
        title=_whole(heard.title),
        message_id=_whole(heard.message_id),
    )


def _whole(text: str) -> str:
    return text.encode(errors="replace").decode()


def _request(heard: Heard, agent: str) -> BridgeSessionRequest:
    return BridgeSessionRequest(
        external_session_id=heard.external,
        service_name=heard.place.service,
        agent_name=agent,
        prompt=heard.text,
        speaker=heard.speaker,
        message_id=heard.message_id,
        surface=heard.place,
        files=heard.files,
        descriptive_name=heard.title,
        service_metadata=heard.metadata,
    )


def _notice(delivery: Delivery, heard: Heard, agent: str, words: str) -> NewPost:
    """Say something in the place as the agent that heard the message."""
    hearer = delivery.adapter.partition(":")[2]
    target = SessionKey(heard.place.service, heard.external, hearer)
    content = PostContent(
        kind="notice", note=words, asker=heard.speaker.id, message_id=heard.message_id
    )
    return NewPost(f"notice:{heard.place}:{heard.message_id}:{agent}", target, content)


def _refusal(delivery: Delivery, heard: Heard, agent: str, words: str) -> NewPost:
    """Say no to somebody once per conversation: a stranger cannot make an agent talk on and on."""
    notice = _notice(delivery, heard, agent, words)
    name = f"refusal:{notice.target}:{agent}:{heard.speaker.id}"
    return replace(notice, key=name)
