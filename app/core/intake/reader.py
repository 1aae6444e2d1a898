"""Reads the inbox: one reader per adapter, one task per place, each message decided once.

A row stays in the inbox until the commit that says what became of it, so a crash repeats the
decision, never its consequences.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace

from app.core.adapters import (
    Adapter,
    GatheringAdapter,
    NamingAdapter,
    PreparedAdapter,
    RereadingAdapter,
)
from app.core.clock import persist
from app.core.commands import parse
from app.core.consent.ledger import Ledger
from app.core.intake.access import Access
from app.core.intake.floor import Floor, decide
from app.core.keys import PlaceKey, SessionKey, adapter_name
from app.core.ports import Clock
from app.core.posts import NewPost, PostContent
from app.core.proposals import Proposals
from app.core.renames import Renames
from app.core.session_manager import SessionManager
from app.core.stores import DeliveryStore, IntakeStore
from app.core.tasks import Tasks
from app.core.types import (
    Accepted,
    Answered,
    AskAnswer,
    BridgeSessionRequest,
    Changed,
    Decision,
    Delivery,
    DeliveryState,
    Heard,
    News,
    Session,
    Speaker,
    Untagged,
)
from app.errors import BridgeError, DeliveryUnreadable, PostError

logger = logging.getLogger(__name__)

Outcome = Accepted | BridgeError

TOO_LATE = "Too late: the agent is already at work on your message as it was."
UNREAD = "Your change could not be read, so your message counts as it was; please say it again."
ANSWERS = "answers an ask"
WHISPER_SECONDS = 10.0
"""What a platform may take to tell one person something; nothing depends on it."""
READ_AGAIN_SECONDS = 1.0
"""After a read that failed: soon enough for people, rare enough for the log."""


class Intake:
    """From stored deliveries to turns."""

    def __init__(
        self,
        deliveries: DeliveryStore,
        decisions: IntakeStore,
        manager: SessionManager,
        ledger: Ledger,
        *,
        adapters: Mapping[str, Adapter],
        access: Access,
        untagged: Untagged,
        clock: Clock,
        proposals: Proposals | None = None,
        renames: Renames | None = None,
    ) -> None:
        self._deliveries = deliveries
        self._decisions = decisions
        self._manager = manager
        self._ledger = ledger
        self._proposals = proposals
        self._adapters = adapters
        self._access = access
        self._untagged = untagged
        self._renames = renames
        self._clock = clock
        self._tasks = Tasks("intake")
        self._wakes: dict[str, asyncio.Event] = {}
        self._places: dict[PlaceKey, deque[tuple[Delivery, Heard | Changed | News]]] = {}
        self._awaited: dict[tuple[str, str], asyncio.Future[Outcome]] = {}

    def start(self) -> None:
        """Begin to read, with whatever the last run left unread."""
        for adapter in self._adapters.values():
            self.open(adapter)

    def open(self, adapter: Adapter) -> None:
        """Read the deliveries of one adapter from now on."""
        wake = self._wakes[adapter.service_name] = asyncio.Event()
        self._tasks.start(self._read(adapter, wake), name=adapter.service_name)

    async def close(self) -> None:
        """Stop reading; what is unread stays in the inbox."""
        await self._tasks.close()

    def untagged(self, place: PlaceKey) -> Floor:
        """Tell who would answer a message that names nobody, and why."""
        nobody = Heard(place, place.name, "", Speaker("", ""), "")
        return decide(nobody, self._decisions.place(place), self._untagged)

    async def take(self, delivery: Delivery) -> None:
        """Keep a delivery; it may be acknowledged as soon as this returns.

        Raises:
            StoreUnavailable: it was not kept.
        """
        await self._deliveries.add(delivery)
        if (wake := self._wakes.get(delivery.adapter)) is not None:
            wake.set()

    async def settle(self, delivery: Delivery) -> Accepted:
        """Keep a delivery and wait until it is known what became of it.

        Raises:
            BridgeError: it could not be kept, or led to nothing.
        """
        key = (delivery.adapter, delivery.delivery_id)
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._awaited[key] = future
        try:
            await self.take(delivery)
            outcome = await future
        finally:
            self._awaited.pop(key, None)
        if isinstance(outcome, BridgeError):
            raise outcome
        return outcome

    async def _read(self, adapter: Adapter, wake: asyncio.Event) -> None:
        last = 0
        if isinstance(adapter, PreparedAdapter):
            await adapter.prepare()
        while True:
            wake.clear()
            try:
                last = await self._read_on(adapter, last)
            except Exception:
                logger.exception("the inbox of %s could not be read", adapter.service_name)
                await self._clock.sleep(READ_AGAIN_SECONDS)
            else:
                await wake.wait()

    async def _read_on(self, adapter: Adapter, last: int) -> int:
        """Read all that is there after a number; returns the number of the last one."""
        while found := await self._deliveries.pending(adapter.service_name, last):
            # Together, so that those of no concern are noted in one commit, not in one each.
            async with asyncio.TaskGroup() as group:
                for delivery in found:
                    last = delivery.seq
                    await self._follow_name(adapter, delivery)
                    group.create_task(self._parse(adapter, delivery))
                    await asyncio.sleep(0)  # in order, and never many at a stretch
            if len(found) == 1:
                break  # it was all there was; whatever came since wakes the reader again
        return last

    async def _follow_name(self, adapter: Adapter, delivery: Delivery) -> None:
        """Let everything follow a repository that got another name, before it is spoken of."""
        if self._renames is None or not isinstance(adapter, NamingAdapter):
            return
        naming = adapter.naming(delivery)
        if naming is not None:
            await self._renames.follow(naming)

    async def _parse(self, adapter: Adapter, delivery: Delivery) -> None:
        """Understand one delivery and hand it to its place."""
        try:
            inbound = adapter.parse(delivery)
        except DeliveryUnreadable as error:
            await self._fail(delivery, error)
            return
        except Exception as error:
            logger.exception("delivery %d of %s", delivery.seq, delivery.adapter)
            await self._fail(delivery, DeliveryUnreadable(type(error).__name__))
            return
        match inbound:
            case None:
                await self._note(delivery, "done", "of no concern")
            case Answered():
                self._tasks.start(self._answer(delivery, inbound), name="answer")
            case Heard():
                self._queue(delivery, _storable(inbound))
            case News() if self._proposals is None:
                await self._note(delivery, "done", "nothing is proposed here")
            case Changed() | News():
                self._queue(delivery, inbound)

    def _queue(self, delivery: Delivery, said: Heard | Changed | News) -> None:
        waiting = self._places.get(said.place)
        if waiting is not None:
            waiting.append((delivery, said))
            return
        self._places[said.place] = deque([(delivery, said)])
        self._tasks.start(self._work(said.place), name=str(said.place))

    async def _work(self, place: PlaceKey) -> None:
        """Decide on the messages of one place, one after another."""
        waiting = self._places[place]
        try:
            while waiting:
                delivery, said = waiting[0]
                try:
                    if isinstance(said, Changed):
                        await self._correct(delivery, said)
                        self._tell(delivery, Accepted())
                    elif isinstance(said, News):
                        await self._follow(delivery, said)
                    else:
                        self._tell(delivery, await self._decide(delivery, said))
                except Exception as error:
                    logger.exception("delivery %d of %s", delivery.seq, delivery.adapter)
                    await self._fail_visibly(delivery, said, type(error).__name__)
                waiting.popleft()
        finally:
            del self._places[place]

    async def _decide(self, delivery: Delivery, heard: Heard) -> Accepted:
        if self._decisions.decided(heard.place, heard.message_id):
            await self._note(delivery, "done", "this message was decided on before")
            return Accepted(repeated=True)
        adapter = self._adapters[delivery.adapter]
        if isinstance(adapter, GatheringAdapter):
            heard = _storable(await adapter.gather(heard))
        view = self._decisions.place(heard.place)
        floor = decide(heard, view, self._untagged)
        if heard.overheard and not floor.agents and not view.present:
            await self._note(delivery, "done", "said to nobody here")
            return Accepted()
        command = parse(heard.text if heard.spoken is None else heard.spoken)
        if command is not None and heard.speaker.kind != "agent":
            if command.name == "stop" and not heard.mentions:
                floor = self._everybody_at_work(heard)
            allowed, posts = await self._admitted(delivery, heard, floor)
            if not floor.agents:
                posts = await self._refused_here(delivery, heard)
            return await self._manager.command(command, delivery, heard, allowed, posts)
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
        spoken = heard.text if heard.spoken is None else heard.spoken
        found = self._ledger.meant(sessions, spoken)
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

    async def _correct(self, delivery: Delivery, changed: Changed) -> None:
        """Let what waits follow its speaker's second thoughts; say when it is too late."""
        adapter = self._adapters[delivery.adapter]
        key = SessionKey(changed.place.service, changed.external, adapter.agent)
        try:
            whole = await self._reread(adapter, changed)
        except PostError as error:
            await self._note(delivery, "failed", f"a change could not be read: {error}")
            await self._whisper(adapter, key, changed.speaker, UNREAD)
            return
        if whole is None:
            await self._note(delivery, "done", "another agent's app tells it")
            return
        corrected = await persist(self._clock, self._decisions.correct, delivery.seq, whole)
        self._manager.corrected(changed.place, corrected)
        if corrected.outcome == "late":
            await self._whisper(adapter, key, changed.speaker, TOO_LATE)

    async def _reread(self, adapter: Adapter, changed: Changed) -> Changed | None:
        """Bring a message together of which a piece changed, if it was ever heard."""
        known = self._decisions.decided(changed.place, changed.message_id)
        if not known or not isinstance(adapter, RereadingAdapter):
            return changed
        return await adapter.reread(changed)

    async def _follow(self, delivery: Delivery, news: News) -> None:
        """Tell news where the work began that they are of."""
        assert self._proposals is not None, "else they were of no concern"
        reason = await self._proposals.take(delivery.adapter, news)
        await self._note(delivery, "done", reason)

    async def _whisper(
        self, adapter: Adapter, key: SessionKey, speaker: Speaker, words: str
    ) -> None:
        """Tell one person something; nobody waits for it, so it is tried once."""
        try:
            async with asyncio.timeout(WHISPER_SECONDS):
                await adapter.whisper(key, speaker, words)
        except Exception as error:  # noqa: BLE001 - it is decided, whoever could be told
            logger.info("%s could not be told in private: %s", speaker.id, error)

    def _everybody_at_work(self, heard: Heard) -> Floor:
        return Floor(self._manager.at_work(heard.place), "an untagged stop stops everybody")

    async def _admitted(
        self, delivery: Delivery, heard: Heard, floor: Floor
    ) -> tuple[tuple[str, ...], tuple[NewPost, ...]]:
        """Sort the addressed agents into those that act and words about those that do not."""
        allowed: list[str] = []
        posts: list[NewPost] = []
        for agent in floor.agents:
            adapter = self._adapters.get(adapter_name(heard.place.service, agent))
            if adapter is None:
                posts.append(_notice(delivery, heard, agent, f"{agent} cannot be reached here."))
                continue
            if heard.withdrawn:
                allowed.append(agent)
                continue
            why = await self._access.refusal(adapter, heard.speaker, heard.place)
            if why is None:
                allowed.append(agent)
            elif heard.speaker.kind == "person":  # two bots would talk to each other for ever
                posts.append(_refusal(delivery, heard, agent, f"{agent} did not act: {why}."))
        return tuple(allowed), tuple(posts)

    async def _refused_here(self, delivery: Delivery, heard: Heard) -> tuple[NewPost, ...]:
        """Refuse a command that is for the place itself, if its speaker may trigger nobody."""
        adapter = self._adapters[delivery.adapter]
        why = await self._access.refusal(adapter, heard.speaker, heard.place)
        return () if why is None else (_notice(delivery, heard, "bridge", f"Not done: {why}."),)

    async def _answer(self, delivery: Delivery, answered: Answered) -> None:
        """Give an answer to the ledger, if it is from somebody who may trigger the agent."""
        try:
            why = await self._refusal_of(answered)
            if why is None:
                who = answered.speaker
                await persist(
                    self._clock,
                    self._ledger.answer,
                    answered.ask,
                    self._ledger.option(answered.ask, answered.option),
                    who.name,
                    speaker=who.id,
                )
        except BridgeError as error:
            why = str(error)
        except Exception as error:
            logger.exception("delivery %d of %s", delivery.seq, delivery.adapter)
            await self._fail(delivery, DeliveryUnreadable(type(error).__name__))
            return
        if why is None:
            await self._note(delivery, "done", "answered")
            return
        await self._note(delivery, "refused", why)
        key = self._ledger.surface(answered.ask)
        if key is not None:
            words = f"This does not count: {why}."
            await self._whisper(self._adapters[delivery.adapter], key, answered.speaker, words)

    async def _refusal_of(self, answered: Answered) -> str | None:
        session = self._ledger.session(answered.ask)
        adapter = self._adapters.get(session.key.adapter)
        if adapter is None:
            return f"{session.key.agent} is not here any more"
        return await self._access.refusal(adapter, answered.speaker, session.place)

    async def _fail_visibly(
        self, delivery: Delivery, heard: Heard | Changed | News, cause: str
    ) -> None:
        """Tell the place that a message led to nothing."""
        if not isinstance(heard, Heard):
            await self._fail(delivery, DeliveryUnreadable(cause))
            return
        words = f"This message could not be dealt with ({cause}). Please send it again."
        notice = _notice(delivery, heard, "bridge", words)
        decision = Decision(delivery.seq, heard, "failed", cause, posts=(notice,))
        try:
            await self._manager.admit(decision)
        except Exception:
            # Nothing of it can be kept; the next message of this place must not wait for it.
            logger.exception("delivery %d of %s", delivery.seq, delivery.adapter)
            await self._fail(delivery, DeliveryUnreadable(cause))
        else:
            self._tell(delivery, DeliveryUnreadable(words))

    async def _fail(self, delivery: Delivery, error: BridgeError) -> None:
        logger.warning("delivery %d of %s failed: %s", delivery.seq, delivery.adapter, error)
        await self._note(delivery, "failed", str(error))
        self._tell(delivery, error)

    async def _note(self, delivery: Delivery, state: DeliveryState, reason: str) -> None:
        await persist(self._clock, self._deliveries.settle, delivery.seq, state, reason)

    def _tell(self, delivery: Delivery, outcome: Outcome) -> None:
        future = self._awaited.pop((delivery.adapter, delivery.delivery_id), None)
        if future is not None and not future.done():
            future.set_result(outcome)


def _storable(heard: Heard) -> Heard:
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
