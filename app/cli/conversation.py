"""Follows one turn from its prompt to its end, wherever the bridge runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from http import HTTPStatus
from typing import Final, Protocol

from app.cli.answers import Question, Responder
from app.errors import BridgeError, Conflict, NotFound
from app.model.types import TurnState
from app.model.updates import kept_view
from app.model.workspaces import ELSEWHERE, FOLDER
from app.server.agent_shapes import AgentOut
from app.server.shapes import (
    EntryOut,
    NewSession,
    OptionOut,
    Page,
    SessionDetail,
    SessionTurn,
    TurnOut,
    UnfinishedOut,
)
from app.tasks import Tasks
from app.terminal.api import BridgeRefused, Connection
from app.terminal.framing import one_line, printable
from app.terminal.screen import Screen, ask_lines, ask_sentence

LOOK_SECONDS: Final = 0.2
"""How often a quiet turn is polled: the events report its rows, not its end."""
OVER: Final = frozenset({TurnState.DONE, TurnState.FAILED, TurnState.CANCELLED})
QUIET: Final[dict[str, str]] = {
    TurnState.QUEUED: "busy; your message is queued",
    TurnState.STARTING: "starting",
    TurnState.PARKED: "parked until someone answers",
}
"""What an agent does in states without output."""

Item = EntryOut | UnfinishedOut


class Way(Protocol):
    """A way to a bridge: over HTTP, or embedded in this process."""

    async def begin(self, new: NewSession) -> SessionTurn:
        """Say something to an agent."""

    async def turn(self, session: int, turn: int) -> TurnOut:
        """Read one turn of a session."""

    async def transcript(self, session: int, *, after: int) -> list[EntryOut]:
        """Read what happened after a row, in order."""

    async def answer(self, ask: int, answer: str, *, in_words: bool) -> None:
        """Answer an ask, with one of its options or in words."""

    async def cancel(self, session: int) -> None:
        """Stop what runs in a session."""

    def follow(self, session: int) -> AsyncIterator[Item]:
        """Yield every row of a session, and all that follow."""


class Remote:
    """The way to a running bridge."""

    def __init__(self, bridge: Connection) -> None:
        self._bridge = bridge

    async def agents(self) -> list[AgentOut]:
        """List the agents."""
        return (await self._bridge.send(Page[AgentOut], "GET", "/agents")).items

    async def begin(self, new: NewSession) -> SessionTurn:
        """Say something to an agent."""
        try:
            body = new.model_dump(exclude_none=True)
            return await self._bridge.send(SessionTurn, "POST", "/sessions", json=body)
        except BridgeRefused as refused:
            if refused.status == HTTPStatus.NOT_FOUND:
                raise NotFound("agent", new.agent) from None
            raise

    async def turn(self, session: int, turn: int) -> TurnOut:
        """Read one turn of a session."""
        found = await self._bridge.send(SessionDetail, "GET", f"/sessions/{session}")
        turns = {each.id: each for each in found.turns}
        if turn not in turns:
            raise NotFound("turn", turn)
        return turns[turn]

    async def transcript(self, session: int, *, after: int = 0) -> list[EntryOut]:
        """Read what happened after a row, in order."""
        path = f"/sessions/{session}/transcript"
        return await self._bridge.pages(EntryOut, path, {"after": after})

    async def answer(self, ask: int, answer: str, *, in_words: bool = False) -> None:
        """Answer an ask, with one of its options or in words."""
        given = {"text" if in_words else "option": answer}
        await self._bridge.request("POST", f"/asks/{ask}/answer", json=given)

    async def cancel(self, session: int) -> None:
        """Stop what runs in a session."""
        await self._bridge.request("POST", f"/sessions/{session}/cancel", json={})

    async def follow(self, session: int) -> AsyncIterator[Item]:
        """Yield every row of a session, and all that follow until the bridge ends."""
        async with aclosing(self._bridge.stream(f"/sessions/{session}/events")) as events:
            async for event, data in events:
                if event == "entry":
                    yield EntryOut.model_validate_json(data)
                elif event == "unfinished":
                    yield UnfinishedOut.model_validate_json(data)


class AgentUnknown(BridgeError):
    """There is no agent of that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no agent {name!r}. See `agent-bridge agents list`.")


class Conversation:
    """One prompt and the turn that follows from it."""

    def __init__(self, way: Way, screen: Screen, responder: Responder, hint: str = "") -> None:
        """Follow a turn; `hint` is shown with where it works."""
        self._way = way
        self._screen = screen
        self._responder = responder
        self._hint = hint
        self._tasks = Tasks("ask")
        self._items: asyncio.Queue[Item] = asyncio.Queue()
        self._begun = asyncio.Event()
        self._left = False
        self._stopping = False
        self._one_question = asyncio.Lock()
        self._questions: dict[int, asyncio.Task[None]] = {}
        self._others: list[EntryOut] = []
        """Rows of other turns; one of those turns may continue this one."""
        self._agent = ""
        self._session = 0
        self._turn = 0
        self._last = 0
        self.unanswered = ""
        """The question that no one could answer, as a sentence."""

    async def run(self, new: NewSession) -> tuple[SessionTurn, TurnOut]:
        """Send a prompt and follow its turn to the end.

        Raises:
            AgentUnknown: there is no such agent.
            Conflict: it was a command, so there is nothing to follow.
            BridgeError: the bridge refused it or went away.
        """
        self._agent = new.agent
        try:
            begun = await self._begin(new)
            self._tasks.start(self._follow(), name="events")
            turn = await self._wait_for_end()
        except BrokenPipeError:
            await self._stop()
            raise
        finally:
            await self._tasks.close()
        for entry in await self._way.transcript(self._session, after=self._last):
            if entry.kind != "ask":
                self._take(entry)
        return begun, turn

    def stop(self) -> None:
        """Stop the turn; one that only waits behind another stays queued."""
        self._stopping = True
        self._tasks.start(self._stop(), name="stop")

    async def _begin(self, new: NewSession) -> SessionTurn:
        try:
            begun = await self._way.begin(new)
        except NotFound:
            raise AgentUnknown(new.agent) from None
        if begun.turn is None:
            raise Conflict(
                f"{new.text!r} is a command of the bridge: it was run, and no turn started"
            )
        if place := describe_place(begun.repository):
            self._screen.line(f"{place}; {self._hint}" if self._hint else place, "dim")
        self._session, self._turn = begun.id, begun.turn
        self._begun.set()
        return begun

    async def _stop(self) -> None:
        await self._begun.wait()
        with suppress(BridgeError):
            turn = await self._way.turn(self._session, self._turn)
            if turn.state == TurnState.QUEUED:
                self._left = True
            else:
                await self._way.cancel(self._session)

    async def _follow(self) -> None:
        # A broken stream only costs live output: the rows are read again at the end.
        with suppress(BridgeError):
            async for item in self._way.follow(self._session):
                self._items.put_nowait(item)

    async def _wait_for_end(self) -> TurnOut:
        while True:
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    self._take(await self._items.get())
            except TimeoutError:
                turn = await self._way.turn(self._session, self._turn)
                if self._stopping or turn.state in QUIET:
                    self._status(QUIET.get(turn.state, ""))
                if turn.successor is not None:  # it continues this one, which was parked
                    self._turn = turn.successor
                    others, self._others = self._others, []
                    for entry in others:
                        self._take(entry)
                elif turn.state in OVER or self._left:
                    return turn

    def _status(self, doing: str) -> None:
        self._screen.status(f"{self._agent} is {'stopping' if self._stopping else doing}")

    def _take(self, item: Item) -> None:
        """Show one item of this turn; those of other turns in the thread are skipped."""
        if isinstance(item, EntryOut):
            self._last = max(self._last, item.id)
        if item.turn != self._turn:
            if isinstance(item, EntryOut):
                self._others.append(item)
            return
        if isinstance(item, UnfinishedOut):
            doing = "thinking" if item.kind == "thought" else "writing"
            tail = printable(item.text).split("\n")[-1]
            self._status(f"{doing}: {tail}")
            return
        if item.kind == "ask":
            self._ask(item)
            return
        self._screen.show(item)
        if not self._questions:
            self._status("working")

    def _ask(self, entry: EntryOut) -> None:
        number = int(entry.data["ask"])
        if entry.data["state"] == "open":
            self._questions[number] = self._tasks.start(self._respond(entry), name="question")
            return
        waiting = self._questions.pop(number, None)
        if waiting is not None and not waiting.done():
            waiting.cancel()
        if waiting is not None and not self._stopping:
            self._screen.line(f"  {one_line(entry.text)}", "bold")

    async def _respond(self, entry: EntryOut) -> None:
        view = kept_view(entry.text, entry.data)
        sentence = ask_sentence(view)
        question = Question(
            agent=view.agent or self._agent,
            title=sentence or view.heading,
            is_sentence=bool(sentence),
            options=[OptionOut(**option) for option in entry.data["options"]],
            details=tuple(ask_lines(view)),
            free_text=bool(entry.data.get("free_text")),
            kind=entry.data.get("kind", "permission"),
            resumes="resume_at" in entry.data,
        )
        async with self._one_question:
            option = await self._responder.choose(question)
        self._questions.pop(entry.data["ask"], None)
        try:
            if option is not None:
                in_words = option not in {each.id for each in question.options}
                await self._way.answer(entry.data["ask"], option, in_words=in_words)
            else:
                paused = question.kind == "pause"
                self.unanswered = entry.text if paused else f"the agent asks {entry.text!r}."
                await self._way.cancel(self._session)
        except BridgeError as error:
            self._screen.line(f"! {one_line(str(error))}", "yellow")


def describe_place(repository: str | None) -> str:
    """Say where a session works."""
    match repository:
        case None:
            return ""
        case "none":
            return "Working in an empty folder"
        case host if host.startswith(ELSEWHERE):
            return f"Working at {host.removeprefix(ELSEWHERE)}, with its own files"
        case folder if folder.startswith(FOLDER):
            return f"Working in {folder.removeprefix(FOLDER)}"
        case name:
            return f"Working in a clone of {name}"
