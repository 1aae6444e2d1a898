"""Checks an agent's requests against the rules first, and asks people where the rules say so."""

from __future__ import annotations

import asyncio
import os.path
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from app.agents.agent import Agent
from app.clock import Clock
from app.core.consent.grants import bind, facts_of, offer_grants, scopes_of
from app.core.consent.ledger import Ledger
from app.core.consent.unasked import needed_asking
from app.core.consent.views import WHOLE_CHARACTERS, is_too_long
from app.model import ask_wording as wording
from app.model.asks import (
    OWN,
    UNANSWERED,
    WITHDRAWN,
    Decided,
    by_grant,
    by_person,
    by_rule,
    find_allowing,
    find_refusing,
    of_agent,
    only_once,
    shorten_names,
)
from app.model.calls import Call, call_of, subject
from app.model.policy import Verdict, decide
from app.model.subagents import BELOW
from app.model.types import TurnRef
from app.model.updates import Ask, AskRequest, GrantScope, ToolUpdate
from app.model.workspaces import attachment_folder
from app.retry import persist


@dataclass(frozen=True, slots=True)
class JudgedRequest:
    """What the rules say about a request."""

    request: AskRequest
    """The request as people see it, if they are asked."""
    decided: Decided | None = None
    """What was decided without people; None if they are asked."""
    answer: str | None = None
    """The agent's option for that decision; None: cancelled."""


class PermissionGate:
    """What the agent of one turn may do."""

    def __init__(self, ledger: Ledger, agent: Agent, ref: TurnRef, clock: Clock) -> None:
        self._ledger = ledger
        self._agent = agent
        self._ref = ref
        self._clock = clock

    async def judge(
        self,
        request: AskRequest,
        known: ToolUpdate | None,
        workspace: Path | None,
        outgoing: Path | None = None,
    ) -> JudgedRequest:
        """Decide by the rules; a question is always for people."""
        if request.subagent:
            request = replace(request, agent=self._name(request))
        if request.kind != "permission":
            return JudgedRequest(request)
        call = call_of(known, request.tool)
        call = await asyncio.to_thread(_resolve_paths, call, workspace, outgoing)
        kind = call.kinds[0] if len(call.kinds) == 1 else ""
        options = of_agent(request.options)
        if kind != "switch_mode":  # how to go on is a choice, in the agent's own words
            options = shorten_names(only_once(options))
        facts = (*request.facts, *facts_of(call, request.tool, known))
        request = replace(
            request,
            options=options,
            subject=subject(call) or request.subject,
            tool_kind=kind,
            facts=facts,
            agent=self._name(request),
        )
        request = replace(request, arguments_hash=bind(request))
        verdict = decide(self._agent.policy, call)
        if verdict.decision == "deny":
            return _refuse(request, verdict.rule)
        # Without a hash, other calls would look the same.
        is_known = request.arguments_hash != ""
        scopes = _grantable(verdict, call, known, request.tool) if is_known else {}
        decided = self._find_permission(verdict, scopes)
        fitting = find_allowing(request.options)
        if decided is not None and fitting is not None:
            return JudgedRequest(request, decided, fitting.id)
        if is_too_long(facts):
            return _refuse(request, wording.TOO_LONG.format(limit=WHOLE_CHARACTERS))
        return JudgedRequest(offer_grants(request, scopes))

    def _name(self, request: AskRequest) -> str:
        """Name who asks: the agent, or one of its sub-agents."""
        return BELOW.join(filter(None, (self._agent.display_name, request.subagent)))

    async def unasked(self, tool: ToolUpdate, workspace: Path | None, *own: Path) -> str:
        """Say what was done that people should have been asked about; empty if nothing.

        Files in folders that are the agent's `own` may always change.
        """
        call = await asyncio.to_thread(_resolve_paths, call_of(tool), workspace, *own)
        if call.paths and set(call.kinds) <= {"edit"} and _is_inside(call.paths, own):
            return ""
        confines = self._agent.confines_commands
        if not needed_asking(self._agent.policy, call, confines_commands=confines):
            return ""
        verdict = decide(self._agent.policy, call)
        if self._find_permission(verdict, _grantable(verdict, call, tool)) is not None:
            return ""
        return subject(call) or tool.title or tool.kind or tool.call

    def _find_permission(
        self, verdict: Verdict, scopes: Mapping[str, GrantScope]
    ) -> Decided | None:
        """Tell what allows a call: a rule, else a person's grant for exactly that."""
        if verdict.decision == "allow":
            return by_rule(verdict.rule, allowed=True)
        digests = [scope.digest for scope in scopes.values()]
        grant = self._ledger.find_grant(self._ref.session, digests) if digests else None
        return None if grant is None else by_grant(grant)

    async def ask(self, request: AskRequest) -> tuple[str | None, Decided]:
        """Let a person decide; returns the agent's option and the record of the decision."""
        seconds = self._agent.ask_seconds
        ask = await persist(self._clock, self._ledger.ask, request, self._ref, seconds=seconds)
        if ask is None:
            return None, WITHDRAWN if request.withdrawal.is_made else UNANSWERED
        return _translate_answer(ask), by_person(ask)


def _grantable(
    verdict: Verdict, call: Call, *claims: ToolUpdate | None
) -> Mapping[str, GrantScope]:
    """Name what people can grant; where the operator's rules say ask, they are asked each time."""
    return scopes_of(call, *claims) if verdict.rule is None else {}


def _refuse(request: AskRequest, rule: object) -> JudgedRequest:
    option = find_refusing(request.options)
    return JudgedRequest(request, by_rule(rule, allowed=False), option.id if option else None)


def _translate_answer(ask: Ask) -> str | None:
    """Translate an answer into an option of the agent, which does not know the bridge's own."""
    if ask.answer is None or not ask.answer.startswith(OWN):
        return ask.answer
    once = find_allowing(ask.options)
    return once.id if once else None


def _is_inside(paths: Sequence[str], folders: Sequence[Path]) -> bool:
    return all(any(Path(path).is_relative_to(folder) for folder in folders) for path in paths)


def _resolve_paths(call: Call, workspace: Path | None, *own: Path | None) -> Call:
    """Add where paths really lead, so that no link leads out of the workspace unnoticed."""
    if workspace is None:
        return call
    real = os.path.realpath(workspace)
    spelled = [
        os.path.join(real, path.removeprefix("file://"))  # noqa: PTH118 - an agent's words, not a path of ours
        for path in call.paths
        if path.isprintable()
    ]
    paths = [at for path in spelled if (at := os.path.realpath(path)) != os.path.normpath(path)]
    also = [name for folder in own if folder for name in (str(folder), os.path.realpath(folder))]
    return replace(
        call,
        paths=tuple(dict.fromkeys((*call.paths, *paths))),
        home=tuple(dict.fromkeys((str(workspace), real))),
        # The agent may also read attachments, and write files for people.
        roots=tuple(
            dict.fromkeys((str(workspace), real, str(attachment_folder(workspace)), *also))
        ),
    )
