"""Finds calls that an agent made without asking, although the rules leave them to people; pure.

Agents read without asking, and they may. What counts is what changes files or runs commands, and
what an operator's rule names.
"""

from __future__ import annotations

from typing import Final

from app.core.consent.reading import only_reads
from app.model.calls import Call
from app.model.policy import CHANGING, Policy, Rule, decide

ACTING: Final = frozenset({*CHANGING, "execute"})


def needed_asking(policy: Policy, call: Call, *, confines_commands: bool = False) -> bool:
    """Tell whether people should have been asked about a call that was made.

    `confines_commands`: the agent runs commands in its own sandbox that lets them change
    nothing, and asks before one leaves it.
    """
    verdict = decide(policy, call)
    if verdict.decision == "allow":
        return False
    # What a denial only might mean is asked, but is no accusation.
    rule = verdict.rule if verdict.rule and verdict.rule.decision == verdict.decision else None
    if rule is not None and _is_particular(rule):
        return True
    acting = ACTING & set(call.kinds)
    if acting == {"execute"}:
        return not confines_commands and not (call.commands and all(map(only_reads, call.commands)))
    return bool(acting) or rule is not None


def _is_particular(rule: Rule) -> bool:
    return bool(rule.title or rule.path or rule.command)
