"""Folds the rows of a place into blocks, one row after another; pure.

The result depends on the rows alone, never on when they came or how many at once: a page that was
opened later shows the same as one that stayed open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from app.core.feed import Unfinished
from app.model.delegation import Branch
from app.model.posts import NoteCode
from app.model.types import Entry
from app.server.page.view.blocks import (
    LOG,
    Block,
    Delegated,
    DelegatedHead,
    FailedBlock,
    HeadBlock,
    SaidBlock,
    Silence,
    TurnBlock,
    WordsBlock,
)
from app.server.page.view.turns import TurnFold, note_of

PREVIEW_CHARACTERS = 30_000
"""The largest growing text that is shown between two rows, some ten times a second."""
_STOPS = {NoteCode.STOPPED, NoteCode.DROPPED, NoteCode.NOT_NEEDED}
"""Notes of turns that were ended before they ran, or while they waited."""


class Fold(TurnFold):
    """A thread, folded from the rows read so far."""

    def __init__(
        self,
        agent_of: Callable[[int], str],
        *,
        whole: bool = True,
        asked_of: Callable[[int], Branch | None] = lambda _turn: None,
    ) -> None:
        """Begin a thread; `whole` says that nothing came before the first row.

        `asked_of` tells of a turn what another agent asked, if it is shown under another one.
        """
        super().__init__(whole=whole)
        self._agent_of = agent_of
        self._asked_of = asked_of
        self._turns: dict[int, TurnBlock] = {}
        self._latest: dict[int, TurnBlock] = {}
        self._delegated: dict[int, Delegated] = {}
        self._told: dict[str, float] = {}
        self._seen: dict[int, float] = {}
        self._unanswered: dict[int, Silence] = {}
        self._last_message = 0

    def add(self, rows: Iterable[Entry]) -> list[Block]:
        """Fold rows in and return the outermost blocks to render again."""
        for row in rows:
            self._take(row)
        return self.take_changed()

    def preview(self, unfinished: Unfinished) -> Block | None:
        """Show text that has no row yet, where its row will be; the fold does not change."""
        turn = self._turns.get(unfinished.turn)
        begun = turn or self._begin(unfinished.session, unfinished.turn, at=0.0)
        live = WordsBlock(f"{begun.id}-live", unfinished.kind, unfinished.text, begun.place)
        if turn is None:
            begun.body.append(live)
            return begun
        last = self.open_words(turn, unfinished.kind)
        if last is None:
            return live
        if len(last.text) + len(unfinished.text) > PREVIEW_CHARACTERS:
            return None
        return replace(last, text=last.text + unfinished.text)

    def find(self, block_id: str) -> Block | None:
        """Return a block of a turn by its id, if there is one."""
        blocks = (each for turn in self._turns.values() for each in turn.body)
        return next((each for each in blocks if each.id == block_id), None)

    def latest(self, session: int) -> TurnBlock | None:
        """Return the last turn of a session that has a row."""
        return self._latest.get(session)

    @property
    def delegated(self) -> tuple[DelegatedHead, ...]:
        """What agents do for others right now."""
        heads = (each.head for each in self._delegated.values())
        return tuple(replace(head) for head in heads if not head.is_over)

    def told(self, agent: str) -> float | None:
        """Return when an agent got its last message."""
        return self._told.get(agent)

    def _take(self, row: Entry) -> None:
        last = self._latest.get(row.session or 0)
        if row.turn is None and isinstance(last, Delegated):
            row = replace(row, turn=last.number)
        if row.turn is not None and row.session is not None:
            self._take_turn(row.session, row.turn, row)
        elif row.kind == "message" and row.turn is None:
            self._take_message(row)
        elif row.kind == "notice" and row.data.get("silence") and row.text:
            known = Silence(f"n{row.id}", self._last_message, tuple(sorted(self._told)))
            self._unanswered[known.message] = known
            self.put(self.blocks, known)
        elif row.kind == "notice" and row.text:
            agent = self._agent_of(row.session) if row.session is not None else row.speaker
            self.put(self.blocks, note_of(row, agent))

    def _take_turn(self, session: int, number: int, row: Entry) -> None:
        turn = self._turns.get(number)
        is_end = turn is not None and "end" in row.data
        if row.kind == "notice" and not row.text and not is_end:
            return  # only for programs
        turn = turn or self._open(session, number, at=row.at)
        self.take_work(turn, row)
        if row.data.get("late"):
            return  # the turn was over by then
        self._seen[session] = row.at
        head = turn.head
        # What a head shows of a time: when, and how long after the start.
        # A sub-agent may go on after its turn.
        now = head.ended if row.kind == "subagent" and head.ended else row.at
        times = [(int(at), int(at - head.began)) for at in (head.ended, now)]
        if times[0] != times[1]:
            self.mark(head)
        head.ended = now
        if isinstance(turn, Delegated):
            self._follow_delegated(turn, row)

    def _take_message(self, row: Entry) -> None:
        to = tuple(row.data.get("to", ()))
        self._told.update(dict.fromkeys(to, row.at))
        files = tuple(row.data.get("files", ()))
        repeats = row.data.get("repeats")
        self._go_on(to, repeats or {})
        self._last_message = row.id
        if not row.data.get("answers"):  # else the card of the ask shows the answer
            run = row.data.get("schedule")
            said = SaidBlock(f"m{row.id}", row.speaker, row.text, row.at, files, to, repeats, run)
            self.put(self.blocks, said)

    def _go_on(self, to: tuple[str, ...], repeats: Mapping[str, Any]) -> None:
        """Put away the offers that a new message took or made pointless."""
        taken: list[FailedBlock | Silence] = [
            failed
            for failed in self._failures.values()
            if failed.agent in to or failed.turn == repeats.get("turn")
        ]
        if (silence := self._unanswered.get(repeats.get("message", 0))) is not None:
            taken.append(silence)
        for each in taken:
            if not each.over:
                each.over = True
                self.mark(each)

    def _open(self, session: int, number: int, *, at: float) -> TurnBlock:
        """Put a new turn into the thread, or under the turn that asked for it."""
        turn = self._begin(session, number, at=at)
        up = None
        if isinstance(turn, Delegated):
            asked = turn.head.asked
            if asked.id in self._delegated:  # it goes on after an answer
                turn = self._turns[number] = self._delegated[asked.id]
                return turn
            self._delegated[asked.id] = turn
            if asked.caller_turn is not None:
                # What it asked may be stored before anything else that it did.
                up = self._turns.get(asked.caller_turn) or self._open(
                    asked.caller_session, asked.caller_turn, at=at
                )
        self._turns[number] = turn
        if session in self._latest:
            self.close(self._latest[session])
        self._latest[session] = turn
        self.put(up.body if up is not None else self.blocks, turn, up)
        self._up[turn.head.id] = turn
        self.open(turn.place, turn.body)
        return turn

    def _begin(self, session: int, number: int, *, at: float) -> TurnBlock:
        """Begin a turn at the time of its message, or when the turn before it ended."""
        name = f"t{number}"
        asked = self._asked_of(number)
        if asked is None:
            agent = self._agent_of(session)
            known = [when for when in (self._told.get(agent), self._seen.get(session)) if when]
            began = min(at, max(known, default=at))
            head = HeadBlock(f"{name}-head", agent, began, began, name, turn=number)
            return TurnBlock(name, agent, head, session, number)
        at = asked.created_at
        top = DelegatedHead(
            f"{name}-head", asked.agent, at, at, name, turn=number, asked=asked, session=session
        )
        home = LOG if asked.caller_turn is None else f"t{asked.caller_turn}-body"
        return Delegated(name, asked.agent, top, session, number, home)

    def _follow_delegated(self, turn: Delegated, row: Entry) -> None:
        """Keep up with how far an agent is that works for another one."""
        head, before = turn.head, turn.head.state
        match row.kind:
            case "message":
                pass
            case "notice" if "end" in row.data or (row.note and row.note.code in _STOPS):
                head.state = str(row.data.get("end") or "stopped")
            case "ask":
                head.state = "waiting" if row.data["state"] == "open" else "working"
            case _ if not head.is_over:
                head.state = "working"
        if head.state != before:
            self.mark(head)
