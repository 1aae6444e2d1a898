"""Keeps asks and their answers: one row each, shown in the place, answered once, in time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from app.core.base import Base
from app.core.consent.answers import ask_back, find_answered
from app.core.consent.views import present
from app.core.consent.waits import SHOWN_AT_ONCE, Answer, Waits
from app.core.feed import Feed
from app.core.outbox import Outbox
from app.errors import Conflict, NotFound
from app.model import ask_wording as wording
from app.model.asks import GO_ON, Grant, OpenedAsk, TakenAnswer, WantedGrants, find_refusing
from app.model.conversations import EVERYTHING, ListFilter
from app.model.delegation import SERVICE
from app.model.keys import SessionKey
from app.model.types import Session, TurnRef
from app.model.updates import Ask, AskKind, AskRequest, Withdrawal
from app.retry import persist
from app.signals import Facts, Topic
from app.tasks import Tasks

logger = logging.getLogger(__name__)

ANSWER_CHARACTERS = 10_000
"""Length of an answer in words: a page or two."""


class Ledger:
    """The open asks of all sessions."""

    def __init__(
        self,
        base: Base,
        outbox: Outbox,
        feed: Feed,
        *,
        submit: Callable[[int], None],
    ) -> None:
        """Keep asks; `submit` runs the queued turns of a session."""
        self._base = base
        self._asks = base.stores.asks
        self._grants = base.stores.grants
        self._sessions = base.stores.sessions
        self._outbox = outbox
        self._feed = feed
        self._submit = submit
        self._waits = Waits()
        self._putting = asyncio.Lock()
        """Questions of tools are counted and opened one after another."""
        self._tasks = Tasks("ledger")
        self._timer: asyncio.Task[None] | None = None
        self._due = float("inf")
        base.signals.on(Topic.ASKS, self._hear)
        base.signals.on_sweep(self._look_again)

    def start(self) -> None:
        """Watch the deadlines of what an earlier run left open."""
        self.watch()

    async def close(self) -> None:
        """Stop watching deadlines."""
        await self._tasks.close()

    async def ask(self, request: AskRequest, ref: TurnRef, *, seconds: float) -> Ask | None:
        """Show an ask and wait for a person; None if it was withdrawn or not answered.

        What was asked before a park and answered meanwhile is not asked again.
        """
        async with self._waits.line_up(ref.turn) as is_wanted:
            return await self._ask(request, ref, seconds) if is_wanted else None

    async def _ask(self, request: AskRequest, ref: TurnRef, seconds: float) -> Ask | None:
        deadline = self._base.clock.now() + seconds
        request = await self._prepare(request, ref)
        if request.withdrawal.is_made:
            return None
        opened = await self._asks.open(request, ref, deadline=deadline)
        if opened is None:
            return None
        watch = self._withdraw(opened.ask.id, request.withdrawal)
        watching = self._tasks.start(watch, name=f"withdrawal of {opened.ask.id}")
        try:
            return await self._wait_for(opened, ref)
        finally:
            if not request.withdrawal.is_made:
                watching.cancel()

    async def _withdraw(self, ask_id: int, withdrawal: Withdrawal) -> None:
        """Close an ask as soon as its agent takes it back."""
        made = asyncio.Event()
        withdrawal.then(made.set)
        await made.wait()
        self._follow(await persist(self._base.clock, self._asks.withdraw, ask_id))

    async def _prepare(self, request: AskRequest, ref: TurnRef) -> AskRequest:
        """Make an ask fit to be shown where people see it."""
        session = self._sessions.session(ref.session)
        link = self._base.page(session.place) if session else ""
        if session is not None:
            request = await self._address(request, session)
        # In a thread: comparing a large file before and after takes a while.
        return await asyncio.to_thread(present, request, self._base.vault.redact, link)

    async def _address(self, request: AskRequest, session: Session) -> AskRequest:
        """Have an agent that works for another one ask itself, or name it where that one asks."""
        if voice := await self._base.hooks.voice_of(session):
            return replace(request, voice=voice)
        if session.place.service == SERVICE:
            name = self._base.name_of(session.key.agent)
            title = wording.ASKED_FOR_OTHERS.format(agent=name, title=request.title)
            return replace(request, title=title)
        return request

    async def _wait_for(
        self, opened: OpenedAsk, ref: TurnRef, *, patience: float | None = None
    ) -> Ask | None:
        """Wait until an ask is closed, or for as long as the patience lasts."""
        self._outbox.send(*opened.posts)
        self._notify(opened.ask)
        self._base.signals.send(Topic.ASKS, asks=[opened.ask.id])
        if opened.ask.state == "answered":
            return opened.ask
        with self._waits.open(opened.ask.id, ref.turn) as answer:
            self.watch()
            self._settle([opened.ask.id])  # it may have been answered while it was being taken over
            timer = None
            if patience is not None:
                end = self._end(answer, patience)
                timer = self._tasks.start(end, name=f"patience for {opened.ask.id}")
            try:
                return await answer
            finally:
                if timer is not None:
                    timer.cancel()

    async def _end(self, answer: Answer, seconds: float) -> None:
        await self._base.clock.sleep(seconds)
        if not answer.done():
            answer.set_result(None)

    async def put(
        self, request: AskRequest, ref: TurnRef, *, seconds: float, patience: float
    ) -> Ask | None:
        """Show a question of a tool and wait a while; returns it as it is then.

        The same question finds the one that is open. None if the turn is over.

        Raises:
            Conflict: too many questions are open.
        """
        async with self._putting:
            shown = self._asks.open_in(ref.session)
            if len(shown) >= SHOWN_AT_ONCE and not self._asks.is_known(request, ref):
                raise Conflict(wording.TOO_MANY_OPEN.format(most=SHOWN_AT_ONCE))
            deadline = self._base.clock.now() + seconds
            request = await self._prepare(request, ref)
            opened = await self._asks.open(request, ref, deadline=deadline)
        if opened is None:
            return None
        try:
            await self._wait_for(opened, ref, patience=patience)
        except asyncio.CancelledError:
            # Nothing reads the answer here: the next call that asks the same does.
            self._tasks.start(self._asks.leave(opened.ask.id), name=f"leave {opened.ask.id}")
            raise
        return await persist(self._base.clock, self._asks.leave, opened.ask.id)

    async def answer(
        self, ask_id: int, answer: str, by: str, *, speaker: str = "", on_page: bool = True
    ) -> Ask:
        """Take a person's answer, an option or words; the first one counts.

        `speaker` is the platform's id of the person, where it is known; `on_page` tells
        whether they saw the whole ask.

        Raises:
            NotFound: there is no such ask or no such option.
            Conflict: it can no longer be answered, or not there.
        """
        ask = self._known(ask_id)
        if not on_page and any(each.id == answer and each.on_page for each in ask.options):
            raise Conflict("this is too long to show here; allow it on the bridge's page")
        if answer not in {offered.id for offered in ask.options} and not (
            ask.free_text and answer.strip()
        ):
            raise NotFound("option", answer)
        taken = await self._asks.answer(ask_id, self._clean(answer, ask), by, speaker=speaker)
        if taken is None:
            raise Conflict(wording.closed(self._known(ask_id)))
        self._follow(taken)
        return self._known(ask_id)

    def option(self, ask_id: int, option: str | int) -> str:
        """Tell the id of an option that was named by its position.

        Raises:
            NotFound: there is no such ask or no such option.
        """
        if isinstance(option, str):
            return option
        offered = self._known(ask_id).options
        if option >= len(offered):
            raise NotFound("option", option)
        return offered[option].id

    def find_answered(
        self, sessions: Iterable[Session], text: str
    ) -> Mapping[str, tuple[int, str]]:
        """Find the asks that a message answers, by agent: the oldest that its words fit.

        A short answer, such as `yes` or a number, counts only if it can mean one ask.
        """
        found: dict[str, tuple[int, str]] = {}
        for session in sessions:
            asks = self._asks.open_in(session.id)
            if (fitting := find_answered(asks, text)) is not None:
                ask, answer = fitting
                found[session.key.agent] = (ask.id, self._clean(answer, ask))
        return found

    def find_unclear(self, sessions: Iterable[Session], text: str) -> Mapping[str, str]:
        """Find the agents for whose asks a short answer is not clear; returns what to say."""
        found: dict[str, str] = {}
        for session in sessions:
            if words := ask_back(self._asks.open_in(session.id), text):
                found[session.key.agent] = words
        return found

    def find_rejected(self, sessions: Iterable[Session], ask_id: int) -> Mapping[str, str]:
        """Find the option that rejects an open ask, by the agent that asks."""
        for session in sessions:
            for ask in self._asks.open_in(session.id):
                refusing = find_refusing(ask.options)
                if ask.id == ask_id and refusing is not None:
                    return {session.key.agent: refusing.id}
        return {}

    def count_open(self, session: int, kind: AskKind) -> int:
        """Count the open asks of a kind in a session."""
        return sum(ask.kind == kind for ask in self._asks.open_in(session))

    def unmet(self, session: int) -> str:
        """Say what the bridge needs to know before a session's turn can begin."""
        for ask in self._asks.open_in(session):
            if ask.kind == "repository":
                return wording.remind(ask)
        return ""

    def settle(self, asks: Sequence[int]) -> None:
        """Wake the turns that wait for asks that are now closed, here and at other members."""
        self._settle(asks)
        if asks:
            self._base.signals.send(Topic.ASKS, asks=asks)
        for ask in filter(None, map(self._asks.ask, asks)):
            now = self._base.clock.now()
            self._base.metrics.trace(
                "ask", ask.turn, ask.created_at, now, kind=ask.kind, end=ask.state
            )

    def _hear(self, facts: Facts) -> None:
        """Take what another member says about asks."""
        self._settle(facts["asks"])
        if self._base.signals.is_leader:
            self.watch()

    def _look_again(self) -> None:
        """Find what was answered, or opened, while signals were lost."""
        self._settle(self._waits.asks())
        if self._base.signals.is_leader:
            self._base.hooks.on_answered()
            self.watch()

    def _settle(self, asks: Iterable[int]) -> None:
        for ask_id in asks:
            ask = self._asks.ask(ask_id)
            if self._base.signals.is_leader and ask is not None:
                self._base.hooks.on_answered(ask.kind)
            if ask is not None and ask.state != "open" and self._waits.end(ask):
                self._notify(ask)

    def withdraw(self, turn: int) -> None:
        """Wake every wait for an answer in a turn that ends."""
        self._waits.withdraw(turn)

    def waiting(self, turn: int) -> Sequence[int]:
        """List the asks that a turn waits for."""
        return self._waits.asks(turn)

    def late(self, turn: int) -> Sequence[Ask]:
        """List the answers that started a turn and that its agent does not know yet."""
        return self._asks.late(turn)

    def find_grant(self, session: int, digests: Sequence[str]) -> Grant | None:
        """Find a grant that holds now for one of these digests in a session."""
        return self._grants.find(session, digests)

    async def grants(self, wanted: WantedGrants, *, after: int = 0, limit: int) -> Sequence[Grant]:
        """List grants, oldest first."""
        return await self._grants.list(wanted, after=after, limit=limit)

    async def take_back(self, grant_id: int, by: str) -> Grant:
        """End a grant: it covers no further call, also of a turn that runs.

        Raises:
            NotFound: there is no such grant.
            Conflict: it does not hold any more.
        """
        grant = await self._grants.end(grant_id, by)
        if grant is None:
            raise Conflict(wording.ENDED_BEFORE)
        self._feed.notify(grant.session)
        return grant

    def _notify(self, ask: Ask) -> None:
        for session in filter(None, (ask.session, ask.host)):
            self._feed.notify(session)

    def session(self, ask_id: int) -> Session:
        """Tell in which session's place people see an ask.

        Raises:
            NotFound: there is no such ask.
        """
        ask = self._known(ask_id)
        session = self._sessions.session(ask.host or ask.session)
        if session is None:
            raise NotFound("ask", ask_id)
        return session

    def surface(self, ask_id: int) -> SessionKey | None:
        """Tell in which conversation an ask is shown; None if there is no such ask."""
        return self._asks.surface(ask_id)

    async def list(self, only: ListFilter = EVERYTHING, *, after: int, limit: int) -> Sequence[Ask]:
        """List asks, oldest first."""
        return await self._asks.asks(only, after=after, limit=limit)

    def watch(self) -> None:
        """Watch the next deadline; called whenever there may be an earlier one."""
        due = self._asks.due() if self._base.signals.is_leader else None
        if due is None or due >= self._due:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._due = due
        self._timer = self._tasks.start(self._wait(), name="deadlines")

    async def _wait(self) -> None:
        while self._due < float("inf"):
            while (left := self._due - self._base.clock.now()) > 0:
                await self._base.clock.sleep(left)
            for ask_id in self._asks.resumable():
                with suppress(Conflict):  # a person was faster
                    await persist(self._base.clock, self.answer, ask_id, GO_ON, wording.BRIDGE)
            self._follow(await persist(self._base.clock, self._asks.expire))
            due = self._asks.due()
            self._due = float("inf") if due is None else due
        self._timer = None

    def _follow(self, taken: TakenAnswer) -> None:
        """Carry out what follows from answers."""
        self._outbox.send(*taken.posts)
        self.settle(taken.asks)
        for session in taken.sessions:
            self._feed.notify(session)
            self._submit(session)

    def present(self, request: AskRequest) -> AskRequest:
        """Make an ask fit to be shown: short enough, and without secrets."""
        return present(request, self._base.vault.redact)

    def _clean(self, answer: str, ask: Ask) -> str:
        if any(option.id == answer for option in ask.options):
            return answer
        return self._base.vault.redact(answer)[:ANSWER_CHARACTERS]

    def _known(self, ask_id: int) -> Ask:
        ask = self._asks.ask(ask_id)
        if ask is None:
            raise NotFound("ask", ask_id)
        return ask
