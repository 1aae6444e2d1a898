"""Folds what agents do in their turns into blocks: text, calls, plans, questions, costs; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

from app.model import ask_wording as wording
from app.model.text import size_words
from app.model.types import Entry
from app.model.updates import kept_view
from app.server.page.view import markdown
from app.server.page.view.blocks import (
    LOG,
    Batch,
    Block,
    CallBlock,
    Delegated,
    FailedBlock,
    NoteBlock,
    Plan,
    QuestionBlock,
    SubagentBlock,
    SubagentHead,
    SubagentStop,
    TurnBlock,
    WordsBlock,
)
from app.server.page.view.steps import calls_of

BATCH_CALLS = 25
"""Calls shown as one line; a longer row becomes several lines, so that each renders quickly."""
HARMLESS = {"read", "search", "fetch", "think", "other"}
"""Kinds of calls that are shown together; a call that changes something is always shown alone."""
NAMED = ("[image: ", "[audio: ", "[file: ")
"""How a text names a file that came with it."""


class Outline:
    """Blocks inside each other, and which of them have to be rendered again."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._up: dict[str, Block] = {}
        self._homes: dict[str, list[Block]] = {}
        self._changed: dict[str, Block] = {}

    def put(self, into: list[Block], block: Block, up: Block | None = None) -> None:
        """Add a new block, inside another one or not."""
        into.append(block)
        if up is not None:
            self._up[block.id] = up
        self.mark(block)

    def mark(self, block: Block) -> None:
        """Mark a block to be rendered again; for a call in a batch, mark the batch."""
        up = self._up.get(block.id)
        if isinstance(up, Batch):
            block = up
        self._changed[block.id] = block

    def open(self, home: str, blocks: list[Block]) -> None:
        """Name the element that holds some blocks."""
        self._homes[home] = blocks

    def within(self, home: str) -> list[Block] | None:
        """Return the blocks in an element of a turn or a sub-agent, if it is one."""
        return self._homes.get(home)

    def around(self, block: Block) -> Block | None:
        """Return the block that contains another one."""
        return self._up.get(block.id)

    def take_changed(self) -> list[Block]:
        """Return the outermost blocks to render again."""
        changed, self._changed = self._changed, {}

        def is_covered(block: Block) -> bool:
            up = self._up.get(block.id)
            while up is not None and up.id not in changed:
                up = self._up.get(up.id)
            return up is not None

        return [block for block in changed.values() if not is_covered(block)]


class TurnFold(Outline):
    """The content of turns, folded from the rows read so far."""

    def __init__(self, *, whole: bool) -> None:
        super().__init__()
        self.usage: dict[int, Mapping[str, Any]] = {}
        """The last report of each session about its tokens and cost."""
        self.questions: dict[int, QuestionBlock] = {}
        self.refusals: list[CallBlock] = []
        """The calls that a rule refused."""
        self._whole = whole
        self._calls: dict[tuple[int, str], CallBlock] = {}
        self._subagents: dict[tuple[int, str], SubagentBlock] = {}
        self._broken: set[str] = set()
        self._spent: dict[int, float] = {}
        self._failures: dict[int, FailedBlock] = {}

    def running(self, turn: TurnBlock) -> CallBlock | None:
        """Return the call that runs in a turn, the last if there are several."""
        return max(self._unended(turn), key=lambda call: call.row, default=None)

    def _unended(self, turn: TurnBlock) -> list[CallBlock]:
        calls = (call for (number, _), call in self._calls.items() if number == turn.number)
        return [each for each in calls if not each.has_ended]

    def close(self, turn: TurnBlock) -> None:
        """End a turn: what has not come to its end by now never will."""
        for call in self._unended(turn):
            if not self._is_going_on(call):
                call.stopped = True
                self.mark(call)

    def _is_going_on(self, block: Block) -> bool:
        """Tell whether a block is the work of a sub-agent that is still running."""
        up = self._up.get(block.id)
        while up is not None:
            if isinstance(up, SubagentBlock) and not up.head.is_over:
                return True
            up = self._up.get(up.id)
        return False

    def open_words(self, turn: TurnBlock, kind: str) -> WordsBlock | None:
        """Return the block that more text of this kind is appended to."""
        last = turn.body[-1] if turn.body else None
        if not isinstance(last, WordsBlock) or last.kind != kind or turn.id in self._broken:
            return None
        return last

    def take_work(self, turn: TurnBlock, row: Entry) -> None:
        """Fold a row of a turn in."""
        match row.kind:
            case "text" | "thought":
                self._take_words(turn, row)
            case "tool":
                self._take_call(turn, row)
            case "plan":
                self._take_plan(turn, row)
            case "ask":
                self._take_question(turn, row)
            case "subagent":
                self._take_subagent(turn, row)
            case "usage":
                self._take_usage(turn, row)
            case "notice":
                if "end" in row.data:
                    self.close(turn)
                self._take_notice(turn, row)

    def _take_words(self, turn: TurnBlock, row: Entry) -> None:
        parent = self._parent_of(turn, row)
        if parent is not None:
            self._take_inner_words(parent, row)
            return
        last = self.open_words(turn, row.kind)
        if last is None:
            kind: Literal["text", "thought"] = "text" if row.kind == "text" else "thought"
            last = WordsBlock(f"w{row.id}", kind, row.text, turn.place)
            self._broken.discard(turn.id)
            self.put(turn.body, last, turn)
        else:
            last.text += row.text
            self.mark(last)
        if row.kind == "text":
            last.text, *more = markdown.pieces(last.text)
            for number, text in enumerate(more, 1):
                self.put(
                    turn.body, WordsBlock(f"w{row.id}-{number}", "text", text, turn.place), turn
                )

    def _parent_of(self, turn: TurnBlock, row: Entry) -> CallBlock | SubagentBlock | None:
        """Find the sub-agent whose work a row is, or the call that stands for it."""
        key = str(row.data.get("parent"))
        return self._calls.get((turn.number, key)) or self._subagents.get((turn.session, key))

    def _take_subagent(self, turn: TurnBlock, row: Entry) -> None:
        key, number = (turn.session, str(row.data["key"])), int(row.data["id"])
        known = self._subagents.get(key)
        if known is None:
            parent = self._parent_of(turn, row)
            name, home = f"s{number}", turn.place if parent is None else parent.place
            head = SubagentHead(f"{name}-head", name, number, row.text, row.data)
            stop = SubagentStop(f"{name}-stop", name, head)
            known = self._subagents[key] = SubagentBlock(name, head, stop, home)
            self._up[head.id] = self._up[stop.id] = known
            self.put(turn.body if parent is None else parent.inside, known, parent or turn)
            self.open(known.place, known.inside)
            if parent is not None:
                self._open_inside(parent)
        known.head.title, known.head.facts = row.text, row.data
        self.mark(known.head)
        self.mark(known.stop)
        if known.head.is_over:
            for call in (each for block in known.inside for each in calls_of(block)):
                if not call.has_ended:
                    call.stopped = True
                    self.mark(call)

    def _take_inner_words(self, parent: CallBlock | SubagentBlock, row: Entry) -> None:
        """Show what a sub-agent says under it, or under the call that started it."""
        last = parent.inside[-1] if parent.inside else None
        if isinstance(last, WordsBlock):
            last.text += row.text
            self.mark(last)
            return
        self.put(parent.inside, WordsBlock(f"w{row.id}", "text", row.text, parent.place), parent)
        self._open_inside(parent)

    def _open_inside(self, parent: CallBlock | SubagentBlock) -> None:
        """Show the inside of a call from its first block on."""
        if isinstance(parent, CallBlock) and len(parent.inside) == 1:
            self.open(parent.place, parent.inside)
            self.mark(parent)

    def _take_call(self, turn: TurnBlock, row: Entry) -> None:
        key = (row.turn or 0, str(row.data["call"]))
        if (known := self._calls.get(key)) is not None:
            self._update_call(known, row)
            return
        parent = self._parent_of(turn, row)
        kind = row.data.get("kind") or "other"
        home = turn.place if parent is None else parent.place
        call = self._calls[key] = CallBlock(
            f"c{row.id}", row.id, row.data, home, kind, began=row.at
        )
        self._update_call(call, row)
        if parent is None:
            self._put_call(turn.body, call, turn)
        else:
            self._put_call(parent.inside, call, parent)
            self._open_inside(parent)

    def _update_call(self, call: CallBlock, row: Entry) -> None:
        if row.data.get("status") == "in_progress" and call.status == "pending":
            call.began = row.at
        call.row, call.data = row.id, row.data
        call.stopped = call.stopped and not call.has_ended
        call.ended = (call.ended or row.at) if call.has_ended else 0.0
        decided = row.data.get("decided")
        call.decided = wording.decision(decided) or call.decided
        how = decided.get("how") if isinstance(decided, Mapping) else ""
        if isinstance(decided, Mapping) and (
            decided.get("allowed") is False or how in {"unanswered", "withdrawn"}
        ):
            if not call.rejected and how == "rule":
                self.refusals.append(call)
            said = {"person": f"Rejected by {decided.get('who')}", "rule": "Rejected by a rule"}
            said["withdrawn"] = "Withdrawn by the agent"
            call.rejected = said.get(str(how), "Nobody answered")
        self.mark(call)

    def _put_call(
        self, into: list[Block], call: CallBlock, up: TurnBlock | CallBlock | SubagentBlock
    ) -> None:
        if call.kind not in HARMLESS:
            self.put(into, call, up)
            return
        last = into[-1] if into else None
        if (
            isinstance(last, Batch)
            and len(last.calls) < BATCH_CALLS
            and last.calls[0].kind == call.kind
        ):
            batch = last
        else:
            batch = Batch(f"b{call.row}", call.home)
            self.put(into, batch, up)
        call.home = batch.id
        batch.calls.append(call)
        self._up[call.id] = batch
        self.mark(batch)

    def _take_plan(self, turn: TurnBlock, row: Entry) -> None:
        steps = tuple(row.data.get("steps", ()))
        if turn.plan is not None:
            turn.plan.steps = steps
            self._broken.add(turn.id)
            self.mark(turn.plan)
            return
        turn.plan = Plan(f"{turn.id}-plan", steps, turn.place)
        self.put(turn.body, turn.plan, turn)

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
            self.put(turn.body, known, turn)
        if isinstance(turn, Delegated) and known.agent != turn.agent:
            # It is shown where people talk, and asked by the agent that works for the one there.
            known.agent = turn.agent
            self.mark(known)
        if data["state"] != "open":
            known.state, known.note = str(data["state"]), row.text
            known.answer, known.closed = str(data.get("answer", "")), row.at
            self.mark(known)
        call = self._calls.get((row.turn or 0, known.call))
        if call is not None:
            known.carded = True
            self.mark(known)
            call.decided = known.note if known.state == "answered" else ""
            call.asked = known.state == "open"
            call.began = row.at
            self.mark(call)

    def _take_usage(self, turn: TurnBlock, row: Entry) -> None:
        session = turn.session if row.session is None else row.session
        fresh = {name: value for name, value in row.data.items() if value is not None}
        self.usage[session] = {**self.usage.get(session, {}), **fresh}
        cost = fresh.get("cost")
        if cost is None:
            return
        base = self._spent.get(session, 0.0 if self._whole else None)
        if base is not None and (turn.head.cost is not None or cost != base):
            # A restarted agent counts from zero again.
            grown = cost - base if cost >= base else cost
            turn.head.cost = (turn.head.cost or 0.0) + grown
            turn.head.currency = str(fresh.get("currency") or turn.head.currency)
            turn.head.estimated = bool(fresh.get("estimated"))
            self.mark(turn.head)
        self._spent[session] = cost

    def _take_notice(self, turn: TurnBlock, row: Entry) -> None:
        if row.data.get("end") == "failed":
            facts = row.data.get("failure") or {"kind": row.note.code if row.note else ""}
            failed = FailedBlock(
                f"n{row.id}", row.id, row.turn or 0, turn.agent, row.text, facts, turn.place
            )
            failed.over = isinstance(turn, Delegated)
            self._failures[failed.turn] = failed
            self.put(turn.body, failed, turn)
            return
        note = note_of(row, turn.agent, turn.place)
        left = tuple(file for file in note.files if not self._place_file(turn, file))
        if note.files and not left:
            return  # each is shown where the text names it
        # The card of a file says what it is.
        self.put(turn.body, replace(note, text="", files=left) if left else note, turn)

    def _place_file(self, turn: TurnBlock, file: Mapping[str, Any]) -> bool:
        """Show a file where the text names it, if it does."""
        for words in turn.body:
            if isinstance(words, WordsBlock) and words.kind == "text":
                line = next(_lines_naming(file, words), None)
                if line is not None:
                    words.files.append((line, file))
                    self.mark(words)
                    return True
        return False


def _lines_naming(file: Mapping[str, Any], words: WordsBlock) -> Iterator[str]:
    """Find the lines that name a file, by its size or its name, and that no other file took."""
    ends = (f", {size_words(int(file.get('size') or 0))}]", f"/{file.get('name')}]")
    lines = words.text.split("\n") if any(end in words.text for end in ends) else []
    taken = [line for line, _ in words.files]
    for line in lines:
        named = line.startswith(NAMED) and line.endswith(ends)
        if named and lines.count(line) > taken.count(line):
            yield line


def note_of(row: Entry, agent: str, home: str = LOG) -> NoteBlock:
    """Show a notice from the bridge."""
    files = tuple(row.data.get("files", ()))
    code = str(row.note.code) if row.note is not None else ""
    return NoteBlock(f"n{row.id}", row.text, home, agent, files, row.session, code, row.data)
