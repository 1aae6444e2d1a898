"""Chooses the blocks of a turn or a sub-agent that a page shows at first; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from app.server.page.view.blocks import (
    Batch,
    Block,
    CallBlock,
    FailedBlock,
    NoteBlock,
    Plan,
    QuestionBlock,
    SubagentBlock,
    TurnBlock,
    WordsBlock,
)

STEPS = 40
"""Steps of a turn that a page shows at first: more than people scroll through."""
MORE_STEPS = 200
"""Steps that are fetched at once."""
FAILURES = 20
"""Failed steps that are shown although they are earlier, the last of them."""
STEP_CHARACTERS = 2_500
"""Characters of a text that count as a step: about a screen."""


@dataclass(frozen=True, slots=True)
class Split:
    """The blocks of a turn or of a sub-agent, split into those to fetch and those to show."""

    earlier: Sequence[Block]
    shown: Sequence[Block]
    until: str = ""
    """The block after the last one that is hidden."""

    @property
    def calls(self) -> int:
        """How many calls are hidden."""
        return sum(len(calls_of(block)) for block in self.earlier)


def split(blocks: Sequence[Block], limit: int) -> Split:
    """Hide all but the last steps, the last failures, and what is not over yet.

    A call is a step; so is each long piece of text.
    """
    cut, steps = len(blocks), 0
    while cut and steps < limit:
        cut -= 1
        steps += _steps(blocks[cut])
    if not any(map(_steps, islice(blocks, cut))):
        return Split((), blocks)
    before = blocks[:cut]
    failures = [block.id for block in before if any(map(_has_failed, calls_of(block)))]
    kept = set(failures[-FAILURES:])
    earlier = [block for block in before if not (_stays(block) or block.id in kept)]
    if not any(map(_steps, earlier)):
        return Split((), blocks)
    hidden = {block.id for block in earlier}
    shown = [block for block in blocks if block.id not in hidden]
    while blocks[cut - 1].id not in hidden:
        cut -= 1
    return Split(earlier, shown, blocks[cut].id)


def calls_of(block: Block) -> Sequence[CallBlock]:
    """Return the calls that a block shows, without those of sub-agents."""
    match block:
        case CallBlock():
            return (block,)
        case Batch():
            return block.calls
    return ()


def _steps(block: Block) -> int:
    if isinstance(block, WordsBlock):
        return len(block.text) // STEP_CHARACTERS
    if isinstance(block, SubagentBlock):
        return 1
    return len(calls_of(block))


def _stays(block: Block) -> bool:
    match block:
        case Plan() | NoteBlock() | FailedBlock() | TurnBlock():
            return True
        case QuestionBlock():
            return block.state == "open"
        case SubagentBlock():
            return not block.head.is_over
    return any(not (call.has_ended or call.stopped) for call in calls_of(block))


def _has_failed(call: CallBlock) -> bool:
    return call.status == "failed" and not call.rejected
