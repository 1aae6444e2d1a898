"""Decides what each message leads to: who may trigger, who acts, and what everyone else is told.

What one message leads to is one commit, and nothing is announced before it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from app.core.adapters import Adapter, find_presence
from app.core.base import Base
from app.core.commands import Command, parse, read_timing
from app.core.consent.ledger import Ledger
from app.core.intake.answers import Answers, Whispers, notice, refusal, speak
from app.core.intake.floor import Access, Floor, Handover, decide, hand_to
from app.core.roster import Roster
from app.core.session_manager import SessionManager
from app.errors import Conflict, PostError, SpeakerUnknown
from app.model import wording
from app.model.inbound import (
    OLD_SECONDS,
    Accepted,
    AskAnswer,
    Changed,
    Corrected,
    Decision,
    Delivery,
    DeliveryState,
    Effect,
    Heard,
    Reason,
)
from app.model.keys import PlaceKey, SessionKey
from app.model.posts import NewPost
from app.model.text import clean_text
from app.model.types import BridgeSessionRequest, PlaceView, Session, Speaker, Untagged
from app.retry import Retries, persist

logger = logging.getLogger(__name__)

T = TypeVar("T")

ASK_AGAIN_SECONDS = 60.0
"""How often a platform that cannot identify a person is asked again."""
HELD_SECONDS = 6 * 86_400.0
"""How long a message is held back for that: after six days its speaker has given up."""


class Dispatcher:
    """Decides on everything said in a place, for all adapters."""

    def __init__(
        self,
        base: Base,
        manager: SessionManager,
        ledger: Ledger,
        *,
        access: Access,
        untagged: Untagged,
        roster: Roster,
    ) -> None:
        self._base = base
        self._roster = roster
        self._removed = roster.removed
        self._handover = Handover(roster, base.adapters)
        self._whispers = Whispers(base.vault)
        self.answers = Answers(base, manager, ledger, access, self._whispers, roster)
        """Handles what is pressed: answers to asks, and verdicts on what agents said."""
        self._decisions = base.stores.decisions
        self._manager = manager
        self._ledger = ledger
        self._access = access
        self._untagged = untagged

    def untagged(self, place: PlaceKey, usual: Untagged | None = None) -> Floor:
        """Tell who would answer a message without a mention, and why.

        `usual` replaces the general setting; a setting of the place wins over both.
        """
        unmentioned = Heard(place, place.name, "", Speaker("", ""), "")
        return decide(unmentioned, self._view(place), usual or self._untagged)

    def read_command(self, words: str) -> Command | None:
        """Read words as a command; None if they are for an agent."""
        return parse(words, self._roster.called(), self._base.hooks)

    async def decide(self, delivery: Delivery, heard: Heard) -> Accepted | str:
        """Decide on a message and commit that; returns a reason if there is nothing to commit."""
        decided = await self._decide(delivery, heard)
        if delivery.sent_at is not None and isinstance(decided, Accepted) and not decided.repeated:
            outcome = "asked" if self._is_old(delivery) else "done"
            self._base.metrics.count(
                "found_late", adapter=delivery.adapter, outcome=outcome if decided.turns else "left"
            )
        return decided

    async def _decide(self, delivery: Delivery, heard: Heard) -> Accepted | str:
        if self._decisions.decided(heard.place, heard.message_id):
            return Reason.DECIDED_BEFORE
        adapter = self._base.adapters[delivery.adapter]
        heard = storable(await self._gather(delivery, adapter, heard))
        heard = replace(heard, sent_at=delivery.sent_at)
        view = self._view(heard.place)
        floor = decide(heard, view, self._untagged)
        last = view.latest
        if floor.reason is Reason.NONE_HERE and last is not None and last in self._removed():
            floor = Floor((last,), floor.reason)  # people still talk to it
        if heard.overheard and not floor.agents and not view.present:
            return Reason.NOT_FOR_US
        if heard.speaker.kind != "agent" and (timing := read_timing(heard.words)):
            when, words = timing
            heard = replace(heard, text=words, spoken=None, while_busy=when)
            return await self._hand_on(delivery, heard, floor)
        command = None if heard.speaker.kind == "agent" else self.read_command(heard.words)
        if command is not None and self._is_old(delivery):
            return await self._leave_undone(delivery, heard)
        if command is not None and command.name == "agent":
            return await self._hand_over(command, delivery, heard, view)
        if command is not None:
            return await self._carry_out(command, delivery, heard, floor)
        return await self._hand_on(delivery, heard, floor)

    async def correct(
        self, delivery: Delivery, changed: Changed
    ) -> tuple[DeliveryState, str] | None:
        """Apply an edit to a queued message; say when it is too late.

        Returns what became of the delivery, if nothing was written.
        """
        adapter = self._base.adapters[delivery.adapter]
        key = SessionKey(changed.place.service, changed.external, adapter.agent)
        was_heard = self._decisions.decided(changed.place, changed.message_id)
        try:
            whole = await adapter.reread(changed) if was_heard else changed
        except PostError as error:
            await self._whispers.send(adapter, key, changed.speaker, wording.EDIT_UNREAD)
            return "failed", str(error)
        if whole is None:
            return "done", Reason.REPORTED_ELSEWHERE
        corrected = await persist(self._base.clock, self._decisions.correct, delivery.seq, whole)
        self._manager.show_correction(changed.place, corrected)
        if corrected.outcome == "late" and self._tells(adapter, changed.place, corrected):
            await self._whispers.send(adapter, key, changed.speaker, wording.TOO_LATE)
        return None

    async def give_up(self, delivery: Delivery, heard: Heard, cause: str) -> str:
        """Record that a message failed, and tell the place; returns the text."""
        words = wording.SEND_AGAIN.format(cause=cause)
        posts = (notice(delivery, heard, "bridge", words),)
        decision = Decision(delivery.seq, heard, "failed", cause, posts=posts)
        await self._manager.start_or_continue(decision)
        return words

    async def _carry_out(
        self, command: Command, delivery: Delivery, heard: Heard, floor: Floor
    ) -> Accepted:
        """Apply a command to the agents that its speaker may trigger."""
        if command.name == "stop" and not heard.mentions:
            at_work = self._manager.at_work(heard.place)
            floor = Floor(at_work, Reason.UNTAGGED_STOP)
        allowed, posts = await self._admit(delivery, heard, floor)
        if not floor.agents:
            posts = await self._refuse_here(delivery, heard)
        if heard.pressed and posts and not allowed:
            return await self._refuse_in_private(delivery, heard, posts)
        return await self._manager.command(command, delivery, heard, allowed, posts)

    def _is_old(self, delivery: Delivery) -> bool:
        """Tell whether something was found so late that it may not be wanted any more."""
        return delivery.sent_at is not None and (
            self._base.clock.now() - delivery.sent_at > OLD_SECONDS
        )

    async def _leave_undone(self, delivery: Delivery, heard: Heard) -> Accepted:
        """Say that a command was found too late."""
        assert delivery.sent_at is not None, "it is old"
        cause = await self._base.stores.gaps.cause(delivery.adapter, delivery.sent_at)
        late = wording.found_late(delivery.sent_at, self._base.clock.now(), cause or "")
        words = wording.COMMAND_TOO_LATE.format(late=late)
        posts = (notice(delivery, heard, "bridge", words),)
        decision = Decision(delivery.seq, heard, "done", Reason.FOUND_LATE, posts=posts)
        return await self._manager.start_or_continue(decision)

    def _view(self, place: PlaceKey) -> PlaceView:
        """Read who is in a place; an agent that was removed does not hold it."""
        view = self._decisions.place(place)
        return replace(view, holder=None) if view.holder in self._removed() else view

    async def _hand_over(
        self, command: Command, delivery: Delivery, heard: Heard, view: PlaceView
    ) -> Accepted:
        """Give the place to an agent, with the words for it if there are any; or list who can."""
        agent = command.argument
        if agent not in self._base.agents and agent not in self._removed():
            return await self._list_agents(agent, delivery, heard, view)
        heard = replace(heard, mentions=(agent,), hands_over=agent)
        floor = Floor((agent,), Reason.HANDED_OVER)
        if command.words or heard.files:
            said = replace(heard, text=command.words, spoken=None)
            return await self._hand_on(delivery, said, floor)
        allowed, posts = await self._admit(delivery, heard, floor)
        if allowed:
            words = wording.TOOK_OVER.format(agent=self._base.name_of(agent))
            posts += (speak(delivery, heard, agent, words),)
        return await self._manager.start_or_continue(
            Decision(
                delivery.seq,
                heard,
                "done" if allowed else "refused",
                "command agent",
                posts=posts,
                effects=hand_to(agent) if allowed else (),
            )
        )

    async def _list_agents(
        self, unknown: str, delivery: Delivery, heard: Heard, view: PlaceView
    ) -> Accepted:
        """Tell who can take the place over, to a speaker who may trigger an agent here."""
        posts = await self._refuse_here(delivery, heard)
        outcome: DeliveryState = "refused" if posts or unknown else "done"
        if not posts:
            words = await self._handover.list(delivery, heard, view.holder, unknown)
            posts = (notice(delivery, heard, "bridge", words),)
        decision = Decision(delivery.seq, heard, outcome, "command agent", posts=posts)
        return await self._manager.start_or_continue(decision)

    async def _hand_on(self, delivery: Delivery, heard: Heard, floor: Floor) -> Accepted:
        """Pass a message to the agents its speaker may trigger, or to their open asks."""
        try:
            effects = self._manager.choose(heard.place, heard.repository)
        except Conflict as error:
            why = str(error)
            said = (notice(delivery, heard, "bridge", why),)
            refused = Decision(delivery.seq, heard, "refused", why, posts=said)
            return await self._manager.start_or_continue(refused)
        allowed, posts = await self._admit(delivery, heard, floor)
        if heard.hands_over in allowed:
            effects += hand_to(heard.hands_over, self._base.name_of(heard.hands_over))
        sessions = self._manager.sessions(heard.place) if allowed else ()
        here = [each for each in sessions if each.key.agent in allowed]
        answers = self._answers(heard, here)
        answering = {each.request.agent_name for each in answers if not each.also_told}
        waiting = [each for each in here if each.key.agent not in answering]
        if heard.while_busy == "now":
            effects += tuple(Effect("make way", each.id) for each in waiting)
        unclear = self._ledger.find_unclear(waiting, heard.words)
        posts += tuple(notice(delivery, heard, *each) for each in unclear.items())
        # What an agent needs to know before it can begin.
        unmet = {each.key.agent: self._ledger.unmet(each.id) for each in waiting}
        posts += tuple(notice(delivery, heard, *each) for each in unmet.items() if each[1])
        if heard.speaker.kind == "person" and self._base.vault.contains(heard.text):
            posts += (notice(delivery, heard, "secret", wording.EXPOSED),)
        outcome: DeliveryState = "refused" if floor.agents and not allowed else "done"
        answering |= set(unclear)
        requests = tuple(self._request(heard, agent) for agent in allowed if agent not in answering)
        reason = floor.reason if allowed or not floor.agents else Reason.REFUSED
        silence = "" if floor.agents or heard.speaker.kind == "agent" else floor.reason
        accepted = await self._manager.start_or_continue(
            Decision(
                delivery.seq,
                heard,
                outcome,
                Reason.ANSWERS_ASK if answers else reason,
                requests,
                posts,
                effects if allowed else (),
                silence=silence,
                answers=answers,
            )
        )
        self._ledger.settle(accepted.answered)
        return accepted

    def _answers(self, heard: Heard, sessions: Sequence[Session]) -> tuple[AskAnswer, ...]:
        """Find the asks that a whole message answers: the usual way on some services."""
        if heard.speaker.kind == "agent" or heard.schedule is not None:
            return ()
        if heard.rejects is not None:
            rejected = self._ledger.find_rejected(sessions, heard.rejects)
            return tuple(
                AskAnswer(heard.rejects, option, self._request(heard, agent), also_told=True)
                for agent, option in rejected.items()
            )
        if heard.files:
            return ()
        found = self._ledger.find_answered(sessions, heard.words)
        return tuple(
            AskAnswer(ask, answer, self._request(heard, agent))
            for agent, (ask, answer) in found.items()
        )

    async def _admit(
        self, delivery: Delivery, heard: Heard, floor: Floor
    ) -> tuple[tuple[str, ...], tuple[NewPost, ...]]:
        """Split the addressed agents into those that act and notices about the others."""
        allowed: list[str] = []
        posts: list[NewPost] = []
        for agent in floor.agents:
            if agent in self._removed():
                say = notice if heard.mentions else refusal
                words = wording.AGENT_REMOVED.format(agent=self._roster.title(agent))
                posts.append(say(delivery, heard, agent, words))
                continue
            name = self._base.name_of(agent)
            adapter = find_presence(self._base.adapters, agent, heard.place.service)
            away = await self._handover.absence(agent, delivery, heard)
            if adapter is None or away is not None:
                words = wording.NOT_HERE.format(agent=name, why=away)
                posts.append(notice(delivery, heard, agent, words))
                continue
            if heard.withdrawn:
                allowed.append(agent)
                continue
            why = await self._refusal(delivery, adapter, heard)
            if why is None:
                allowed.append(agent)
            elif heard.speaker.kind == "person":  # two bots would talk to each other for ever
                say = notice if why == wording.UNCHECKED else refusal
                words = wording.DID_NOT_ACT.format(agent=name, why=why)
                posts.append(say(delivery, heard, agent, words))
        return tuple(allowed), tuple(posts)

    async def _refuse_in_private(
        self, delivery: Delivery, heard: Heard, posts: Sequence[NewPost]
    ) -> Accepted:
        """Tell the person who pressed a button in private that it does not count, every time."""
        refused = Decision(delivery.seq, heard, "refused", Reason.REFUSED)
        accepted = await self._manager.start_or_continue(refused)
        adapter = self._base.adapters[delivery.adapter]
        for post in () if accepted.repeated else posts:
            await self._whispers.send(adapter, post.target, heard.speaker, post.content.note)
        return accepted

    async def _refuse_here(self, delivery: Delivery, heard: Heard) -> tuple[NewPost, ...]:
        """Refuse a command for the place itself if its speaker may trigger no agent."""
        adapter = self._base.adapters[delivery.adapter]
        why = await self._refusal(delivery, adapter, heard)
        if why is None:
            return ()
        return (refusal(delivery, heard, "bridge", wording.NOT_DONE.format(why=why)),)

    async def _gather(self, delivery: Delivery, adapter: Adapter, heard: Heard) -> Heard:
        """Complete a message; if its platform does not answer, it waits as in `_refusal`."""
        try:
            return await self._retry(delivery, heard, lambda: adapter.gather(heard))
        except SpeakerUnknown:
            return heard

    async def _refusal(self, delivery: Delivery, adapter: Adapter, heard: Heard) -> str | None:
        """Find out why a speaker may not trigger; if the platform cannot tell, the message waits.

        It stays in the inbox meanwhile, and so do later messages of the same place. Where an agent
        is at work, nothing waits: the next message may be a stop.
        """
        speaker, place = heard.speaker, heard.place
        try:
            return await self._retry(
                delivery, heard, lambda: self._access.refusal(adapter, speaker, place)
            )
        except SpeakerUnknown:
            return wording.UNCHECKED

    async def _retry(self, delivery: Delivery, heard: Heard, call: Callable[[], Awaitable[T]]) -> T:
        def pauses() -> Iterator[float]:
            until = delivery.received_at + HELD_SECONDS
            while self._base.clock.now() < until and not self._manager.at_work(heard.place):
                yield ASK_AGAIN_SECONDS

        retries = Retries(self._base.clock, pauses())
        while True:
            try:
                return await call()
            except SpeakerUnknown as error:
                await retries.wait(error)

    def _tells(self, adapter: Adapter, place: PlaceKey, corrected: Corrected) -> bool:
        """Tell whether this adapter speaks about an edit: every adapter here hears of it."""
        agents = {each.id: each.key.agent for each in self._manager.sessions(place)}
        return agents.get(corrected.turns[0].session, adapter.agent) == adapter.agent

    def _request(self, heard: Heard, agent: str) -> BridgeSessionRequest:
        known = self._base.agents.get(agent)
        # A run of a schedule is a piece of work of its own, and old words are for no running one.
        waits = heard.while_busy != "steer" or heard.schedule or heard.sent_at is not None
        takes_words = known is not None and known.config.while_busy == "steer"
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
            while_busy="steer" if takes_words and not waits else "queue",
        )


def storable(heard: Heard) -> Heard:
    """Replace what JSON may carry and no database keeps."""
    speaker = replace(
        heard.speaker, id=clean_text(heard.speaker.id), name=clean_text(heard.speaker.name)
    )
    return replace(
        heard,
        speaker=speaker,
        text=clean_text(heard.text),
        title=clean_text(heard.title),
        message_id=clean_text(heard.message_id),
    )
