"""Folds the rows of a place into blocks, one row after another; pure.

The result depends on the rows alone, never on when they came or how many at once: a page that was
opened later shows the same as one that stayed open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

from app.core.feed import Unfinished
from app.model import ask_wording as wording
from app.model.posts import NoteCode
from app.model.text import size_words
from app.model.types import Entry
from app.model.updates import kept_view
from app.server.page.view import markdown
from app.server.page.view.blocks import (
    LOG,
    AskedBlock,
    Batch,
    Block,
    CallBlock,
    ErrandBlock,
    ErrandHead,
    FailedBlock,
    HeadBlock,
    NoteBlock,
    Plan,
    QuestionBlock,
    SaidBlock,
    Silence,
    TurnBlock,
    WordsBlock,
)

BATCH_CALLS = 25
"""Calls shown as one line; a longer row becomes several lines, so that each renders quickly."""
HARMLESS = {"read", "search", "fetch", "think", "other"}
"""Kinds of calls that are shown together; a call that changes something is always shown alone."""
PREVIEW_CHARACTERS = 30_000
"""The largest growing text that is shown between two rows, some ten times a second."""


_STOPS = {NoteCode.STOPPED, NoteCode.DROPPED, NoteCode.NOT_NEEDED}
"""Notes of turns that were ended before they ran, or while they waited."""
NAMED = ("[image: ", "[audio: ", "[file: ")
"""How a text names a file that came with it."""


class Fold:
    """A thread, folded from the rows read so far."""

    def __init__(
        self,
        agent_of: Callable[[int], str],
        *,
        whole: bool = True,
        asked_of: Callable[[int], AskedBlock | None] = lambda _turn: None,
    ) -> None:
        """Begin a thread; `whole` says that nothing came before the first row.

        `asked_of` tells of a turn what another agent asked, if it is shown under another one.
        """
        self.blocks: list[Block] = []
        self.usage: dict[int, Mapping[str, Any]] = {}
        """The last report of each session about its tokens and cost."""
        self.questions: dict[int, QuestionBlock] = {}
        self._agent_of = agent_of
        self._asked_of = asked_of
        self._errands: dict[int, ErrandBlock] = {}
        self._whole = whole
        self.refusals: list[CallBlock] = []
        """The calls that a rule refused."""
        self._turns: dict[int, TurnBlock] = {}
        self._latest: dict[int, TurnBlock] = {}
        self._broken: set[str] = set()
        self._calls: dict[tuple[int, str], CallBlock] = {}
        self._told: dict[str, float] = {}
        self._seen: dict[int, float] = {}
        self._spent: dict[int, float] = {}
        self._failures: dict[int, FailedBlock] = {}
        self._unanswered: dict[int, Silence] = {}
        self._last_message = 0
        self._up: dict[str, Block] = {}
        self._homes: dict[str, list[Block]] = {}
        self._changed: dict[str, Block] = {}

    def add(self, rows: Iterable[Entry]) -> list[Block]:
        """Fold rows in and return the outermost blocks to render again."""
        self._changed = {}
        for row in rows:
            self._take(row)
        return [block for block in self._changed.values() if not self._is_covered(block)]

    def preview(self, unfinished: Unfinished) -> Block | None:
        """Show text that has no row yet, where its row will be; the fold does not change."""
        turn = self._turns.get(unfinished.turn)
        if turn is None:
            turn = self._begin(unfinished.session, unfinished.turn, at=0.0)
            turn.body.append(_live(turn, unfinished))
            return turn
        last = self._open_words(turn, unfinished.kind)
        if last is None:
            return _live(turn, unfinished)
        if len(last.text) + len(unfinished.text) > PREVIEW_CHARACTERS:
            return None
        return replace(last, text=last.text + unfinished.text)

    def find(self, block_id: str) -> Block | None:
        """Return a block of a turn by its id, if there is one."""
        return next(
            (each for turn in self._turns.values() for each in turn.body if each.id == block_id),
            None,
        )

    def within(self, home: str) -> list[Block] | None:
        """Return the blocks in an element of a turn or a sub-agent, if it is one."""
        return self._homes.get(home)

    def around(self, block: Block) -> Block | None:
        """Return the block that contains another one."""
        return self._up.get(block.id)

    def latest(self, session: int) -> TurnBlock | None:
        """Return the last turn of a session that has a row."""
        return self._latest.get(session)

    @property
    def errands(self) -> tuple[ErrandHead, ...]:
        """What agents do for others right now."""
        heads = (each.head for each in self._errands.values())
        return tuple(replace(head) for head in heads if not head.is_over)

    def told(self, agent: str) -> float | None:
        """Return when an agent got its last message."""
        return self._told.get(agent)

    def running(self, turn: TurnBlock) -> CallBlock | None:
        """Return the call that runs in a turn, the last if there are several."""
        return max(self._unended(turn), key=_row, default=None)

    def _unended(self, turn: TurnBlock) -> list[CallBlock]:
        calls = (call for (number, _), call in self._calls.items() if number == turn.number)
        return [each for each in calls if not each.has_ended]

    def _close(self, turn: TurnBlock) -> None:
        """End a turn: what has not come to its end by now never will."""
        for call in self._unended(turn):
            call.stopped = True
            self._mark(call)

    def _take(self, row: Entry) -> None:
        last = self._latest.get(row.session or 0)
        if row.turn is None and isinstance(last, ErrandBlock):
            row = replace(row, turn=last.number)
        if row.kind == "message" and row.turn is None:
            self._take_message(row)
        elif row.turn is not None and row.session is not None:
            is_end = row.turn in self._turns and "end" in row.data
            if row.kind == "notice" and not row.text and not is_end:
                return  # only for programs
            turn = self._turn(row)
            self._take_work(turn, row)
            self._clock(turn, row)
            if isinstance(turn, ErrandBlock):
                self._follow_errand(turn, row)
        elif row.kind == "notice" and row.text:
            agent = self._agent_of(row.session) if row.session is not None else row.speaker
            if row.data.get("silence"):
                self._take_silence(row)
            else:
                self._put(self.blocks, _note(row, agent))

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
            self._put(self.blocks, said)

    def _take_silence(self, row: Entry) -> None:
        known = Silence(f"n{row.id}", self._last_message, tuple(sorted(self._told)))
        self._unanswered[known.message] = known
        self._put(self.blocks, known)

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
                self._mark(each)

    def _take_work(self, turn: TurnBlock, row: Entry) -> None:
        match row.kind:
            case "text" | "thought":
                self._take_words(turn, row)
            case "tool":
                self._take_call(turn, row)
            case "plan":
                self._take_plan(turn, row)
            case "ask":
                self._take_question(turn, row)
            case "usage":
                self._take_usage(turn, row)
            case "notice":
                if "end" in row.data:
                    self._close(turn)
                self._take_notice(turn, row)

    def _take_notice(self, turn: TurnBlock, row: Entry) -> None:
        if row.data.get("end") == "failed":
            facts = row.data.get("failure") or {"kind": row.note.code if row.note else ""}
            failed = FailedBlock(
                f"n{row.id}", row.id, row.turn or 0, turn.agent, row.text, facts, turn.place
            )
            failed.over = isinstance(turn, ErrandBlock)
            self._failures[failed.turn] = failed
            self._put(turn.body, failed, turn)
            return
        files = tuple(self._place_files(turn, row.data.get("files", ())))
        if row.data.get("files") and not files:
            return  # each is shown where the text names it
        note = _note(row, turn.agent, turn.place)
        # The card of a file says what it is.
        self._put(turn.body, replace(note, text="", files=files) if files else note, turn)

    def _place_files(
        self, turn: TurnBlock, files: Iterable[Mapping[str, Any]]
    ) -> Iterator[Mapping[str, Any]]:
        """Show files where the text names them; yield the others."""
        words = [each for each in turn.body if isinstance(each, WordsBlock) and each.kind == "text"]
        for file in files:
            line, home = next(_named_places(words, file), ("", None))
            if home is None:
                yield file
            else:
                home.files.append((line, file))
                self._mark(home)

    def _turn(self, row: Entry) -> TurnBlock:
        assert row.turn is not None
        assert row.session is not None
        turn = self._turns.get(row.turn)
        return turn if turn is not None else self._open(row.session, row.turn, at=row.at)

    def _open(self, session: int, number: int, *, at: float) -> TurnBlock:
        """Put a new turn into the thread, or under the turn that asked for it."""
        turn = self._begin(session, number, at=at)
        up = None
        if isinstance(turn, ErrandBlock):
            asked = turn.head.asked
            if asked.delegation in self._errands:  # it goes on after an answer
                turn = self._turns[number] = self._errands[asked.delegation]
                return turn
            self._errands[asked.delegation] = turn
            if asked.caller_turn is not None:
                # What it asked may be stored before anything else that it did.
                up = self._turns.get(asked.caller_turn) or self._open(
                    asked.caller_session, asked.caller_turn, at=at
                )
        self._turns[number] = turn
        if session in self._latest:
            self._close(self._latest[session])
        self._latest[session] = turn
        self._put(up.body if up is not None else self.blocks, turn, up)
        self._up[turn.head.id] = turn
        self._homes[turn.place] = turn.body
        return turn

    def _begin(self, session: int, number: int, *, at: float) -> TurnBlock:
        """Begin a turn at the time of its message, or when the turn before it ended."""
        agent = self._agent_of(session)
        if (asked := self._asked_of(number)) is not None:
            return self._begin_errand(session, number, asked)
        known = [when for when in (self._told.get(agent), self._seen.get(session)) if when]
        began = min(at, max(known, default=at))
        name = f"t{number}"
        head = HeadBlock(f"{name}-head", agent, began, began, name, turn=number)
        return TurnBlock(name, agent, head, session, number)

    def _begin_errand(self, session: int, number: int, asked: AskedBlock) -> ErrandBlock:
        """Begin what an agent does for another one."""
        name = f"t{number}"
        head = ErrandHead(
            f"{name}-head",
            asked.agent,
            asked.began,
            asked.began,
            name,
            turn=number,
            asked=asked,
            session=session,
        )
        home = LOG if asked.caller_turn is None else f"t{asked.caller_turn}-body"
        return ErrandBlock(name, asked.agent, head, session, number, home)

    def _follow_errand(self, turn: ErrandBlock, row: Entry) -> None:
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
            self._mark(head)

    def _clock(self, turn: TurnBlock, row: Entry) -> None:
        assert row.session is not None
        self._seen[row.session] = row.at
        head = turn.head
        if _clocked(head, head.ended) != _clocked(head, row.at):
            self._mark(head)
        head.ended = row.at

    def _take_words(self, turn: TurnBlock, row: Entry) -> None:
        assert row.kind in {"text", "thought"}
        parent = self._calls.get((turn.number, str(row.data.get("parent"))))
        if parent is not None:
            self._take_inner_words(parent, row)
            return
        last = self._open_words(turn, row.kind)
        if last is None:
            kind: Literal["text", "thought"] = "text" if row.kind == "text" else "thought"
            last = WordsBlock(f"w{row.id}", kind, row.text, turn.place)
            self._broken.discard(turn.id)
            self._put(turn.body, last, turn)
        else:
            last.text += row.text
            self._mark(last)
        if row.kind == "text":
            last.text, *more = markdown.pieces(last.text)
            for number, text in enumerate(more, 1):
                piece = WordsBlock(f"w{row.id}-{number}", "text", text, turn.place)
                self._put(turn.body, piece, turn)

    def _take_inner_words(self, parent: CallBlock, row: Entry) -> None:
        """Show what a sub-agent says under the call that started it."""
        last = parent.inside[-1] if parent.inside else None
        if isinstance(last, WordsBlock):
            last.text += row.text
            self._mark(last)
            return
        self._put(parent.inside, WordsBlock(f"w{row.id}", "text", row.text, parent.place), parent)
        self._open_inside(parent)

    def _open_inside(self, parent: CallBlock) -> None:
        """Show the inside of a call from its first block on."""
        if len(parent.inside) == 1:
            self._homes[parent.place] = parent.inside
            self._mark(parent)

    def _open_words(self, turn: TurnBlock, kind: str) -> WordsBlock | None:
        """Return the block that more text of this kind is appended to."""
        last = turn.body[-1] if turn.body else None
        if not isinstance(last, WordsBlock) or last.kind != kind or turn.id in self._broken:
            return None
        return last

    def _take_call(self, turn: TurnBlock, row: Entry) -> None:
        assert row.turn is not None
        key = (row.turn, str(row.data["call"]))
        known = self._calls.get(key)
        if known is not None:
            self._update_call(known, row)
            return
        parent = self._calls.get((row.turn, str(row.data.get("parent"))))
        kind = row.data.get("kind") or "other"
        call = CallBlock(f"c{row.id}", row.id, row.data, turn.place, kind, began=row.at)
        self._update_call(call, row)
        if parent is None:
            self._put_call(turn.body, call, turn)
        else:
            call.home = parent.place
            self._put_call(parent.inside, call, parent)
            self._open_inside(parent)
        self._calls[key] = call

    def _update_call(self, call: CallBlock, row: Entry) -> None:
        if row.data.get("status") == "in_progress" and call.status == "pending":
            call.began = row.at
        call.row, call.data = row.id, row.data
        call.ended = (call.ended or row.at) if call.has_ended else 0.0
        decided = row.data.get("decided")
        call.decided = wording.decision(decided) or call.decided
        if isinstance(decided, Mapping) and decided.get("allowed") is False:
            if not call.rejected and decided.get("how") == "rule":
                self.refusals.append(call)
            call.rejected = _rejected(decided)
        self._mark(call)

    def _put_call(self, into: list[Block], call: CallBlock, up: TurnBlock | CallBlock) -> None:
        if call.kind not in HARMLESS:
            self._put(into, call, up)
            return
        batch = into[-1] if into else None
        if not _can_take(batch, call):
            batch = Batch(f"b{call.row}", call.home)
            self._put(into, batch, up)
        assert isinstance(batch, Batch)
        call.home = batch.id
        batch.calls.append(call)
        self._up[call.id] = batch
        self._mark(batch)

    def _take_plan(self, turn: TurnBlock, row: Entry) -> None:
        steps = tuple(row.data.get("steps", ()))
        if turn.plan is not None:
            turn.plan.steps = steps
            self._broken.add(turn.id)
            self._mark(turn.plan)
            return
        turn.plan = Plan(f"{turn.id}-plan", steps, turn.place)
        self._put(turn.body, turn.plan, turn)

    def _take_question(self, turn: TurnBlock, row: Entry) -> None:
        data = row.data
        number = int(data["ask"])
        known = self.questions.get(number)
        if known is None:
            known = self.questions[number] = QuestionBlock(
                f"a{number}",
                number,
                turn.agent,
                row.text if data["state"] == "open" else "",
                tuple(data.get("options", ())),
                str(data.get("call", "")),
                row.at,
                turn.place,
                bool(data.get("free_text")),
                str(data.get("kind", "")),
                str(data.get("tool_kind", "")),
                data.get("until"),
                data.get("resume_at") is not None,
                kept_view(row.text, data),
                str(data.get("url", "")),
            )
            self._put(turn.body, known, turn)
        if isinstance(turn, ErrandBlock) and known.agent != turn.agent:
            # It is shown where people talk, and asked by the agent that works for the one there.
            known.agent = turn.agent
            self._mark(known)
        if data["state"] != "open":
            known.state, known.note = str(data["state"]), row.text
            known.answer, known.closed = str(data.get("answer", "")), row.at
            self._mark(known)
        call = self._calls.get((row.turn or 0, known.call))
        if call is not None:
            known.carded = True
            self._mark(known)
            call.decided = known.note if known.state == "answered" else ""
            call.asked = known.state == "open"
            call.began = row.at
            self._mark(call)

    def _take_usage(self, turn: TurnBlock, row: Entry) -> None:
        assert row.session is not None
        known = self.usage.get(row.session, {})
        fresh = {name: value for name, value in row.data.items() if value is not None}
        self.usage[row.session] = {**known, **fresh}
        cost = fresh.get("cost")
        if cost is None:
            return
        base = self._spent.get(row.session, 0.0 if self._whole else None)
        if base is not None and (turn.head.cost is not None or cost != base):
            # A restarted agent counts from zero again.
            grown = cost - base if cost >= base else cost
            turn.head.cost = (turn.head.cost or 0.0) + grown
            turn.head.currency = str(fresh.get("currency") or turn.head.currency)
            turn.head.estimated = bool(fresh.get("estimated"))
            self._mark(turn.head)
        self._spent[row.session] = cost

    def _put(self, into: list[Block], block: Block, up: Block | None = None) -> None:
        into.append(block)
        if up is not None:
            self._up[block.id] = up
        self._mark(block)

    def _mark(self, block: Block) -> None:
        """Mark a block to be rendered again; for a call in a batch, mark the batch."""
        up = self._up.get(block.id)
        if isinstance(up, Batch):
            block = up
        self._changed[block.id] = block

    def _is_covered(self, block: Block) -> bool:
        """Return whether a block that contains this one is rendered again."""
        up = self._up.get(block.id)
        while up is not None and up.id not in self._changed:
            up = self._up.get(up.id)
        return up is not None


def _row(call: CallBlock) -> int:
    return call.row


def _rejected(decided: Mapping[str, Any]) -> str:
    """Say who refused a call."""
    match decided.get("how"):
        case "person":
            return f"Rejected by {decided.get('who')}"
        case "rule":
            return "Rejected by a rule"
    return "Not allowed: no answer"


def _named_places(
    words: Iterable[WordsBlock], file: Mapping[str, Any]
) -> Iterator[tuple[str, WordsBlock]]:
    """Find the lines that name a file, by its size or its name, and that no other file took."""
    ends = (f", {size_words(int(file.get('size') or 0))}]", f"/{file.get('name')}]")
    for each in words:
        lines = each.text.split("\n") if any(end in each.text for end in ends) else []
        taken = [line for line, _ in each.files]
        for line in lines:
            named = line.startswith(NAMED) and line.endswith(ends)
            if named and lines.count(line) > taken.count(line):
                yield line, each


def _note(row: Entry, agent: str, home: str = LOG) -> NoteBlock:
    files = tuple(row.data.get("files", ()))
    code = str(row.note.code) if row.note is not None else ""
    return NoteBlock(f"n{row.id}", row.text, home, agent, files, row.session, code, row.data)


def _clocked(head: HeadBlock, at: float) -> tuple[int, int]:
    """Return what a head shows of a time: when, and how long after the start."""
    return int(at), int(at - head.began)


def _can_take(batch: Block | None, call: CallBlock) -> bool:
    return (
        isinstance(batch, Batch)
        and len(batch.calls) < BATCH_CALLS
        and batch.calls[0].kind == call.kind
    )


def _live(turn: TurnBlock, unfinished: Unfinished) -> WordsBlock:
    return WordsBlock(f"{turn.id}-live", unfinished.kind, unfinished.text, turn.place)
