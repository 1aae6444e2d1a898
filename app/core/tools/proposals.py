"""Lets an agent propose its work during its turn, and read what others say about it.

Everything goes through the gate, as at the end of a turn; the end then finds it done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from app.core.repositories.forge import Forge
from app.core.tools import wording
from app.core.turns.turn_context import TurnContext
from app.errors import RepositoryError
from app.markdown.hidden import strip
from app.model.agents import Arguments, Caller, Result, Tool, ToolRefused
from app.model.proposals import Examined, Work
from app.model.types import Entry
from app.model.wording import pushed_words
from app.retry import persist

SHIP_SECONDS: Final = 280.0
"""How long a call may push, unless the agent's program gives up sooner."""
TITLE_CHARACTERS: Final = 200
BODY_CHARACTERS: Final = 20_000
EXCERPT_CHARACTERS: Final = 8_000
"""What a call returns of failed checks."""
REMARK_CHARACTERS: Final = 2_000


class ProposalTools:
    """The tools with which agents open, change and follow pull requests."""

    def __init__(self, context: TurnContext, forge: Forge) -> None:
        self._context = context
        self._forge = forge

    def tools(self) -> Sequence[Tool]:
        """List the tools."""
        title = {
            "type": "string",
            "minLength": 1,
            "maxLength": TITLE_CHARACTERS,
            "description": "One line that says what the change does.",
        }
        body = {
            "type": "string",
            "maxLength": BODY_CHARACTERS,
            "description": "What changed and why, in Markdown. Who asked for it is added below.",
        }
        kept = {"default": ""}
        return (
            Tool(
                "pr_open",
                wording.PR_OPEN,
                {"title": title, "body": body},
                ("proposals.write",),
                self._open,
            ),
            Tool(
                "pr_update",
                wording.PR_UPDATE,
                {"title": {**title, "minLength": 0, **kept}, "body": {**body, **kept}},
                ("proposals.write",),
                self._update,
            ),
            Tool(
                "checks_read",
                wording.CHECKS_READ,
                {},
                ("checks.read",),
                self._read_checks,
                brings_words=True,
            ),
        )

    async def _open(self, caller: Caller, arguments: Arguments) -> Result:
        return await self._ship(caller, arguments["title"], arguments["body"])

    async def _update(self, caller: Caller, arguments: Arguments) -> Result:
        record = self._context.workspaces.checkout(caller.session)
        if record is None or not record.sent:
            raise ToolRefused(wording.NOTHING_PROPOSED)
        return await self._ship(caller, arguments.get("title", ""), arguments.get("body", ""))

    async def _ship(self, caller: Caller, title: str, body: str) -> Result:
        context, session, turn = self._context, caller.session, caller.turn
        messages = context.stores.turns.messages(turn.id)
        work = Work(title or session.title, messages, session.link, turn.continued)
        try:
            async with asyncio.timeout(min(SHIP_SECONDS, caller.patience)):
                made = await context.workspaces.propose(session, work, title=title, body=body)
        except RepositoryError as error:
            raise ToolRefused(context.vault.redact(str(error))) from error
        except TimeoutError:
            raise ToolRefused(wording.NOT_SHIPPED_YET) from None
        shipped = made.shipped
        if shipped.pushed is not None:
            words = context.vault.redact(pushed_words(shipped.pushed))
            data = {"pushed": asdict(shipped.pushed), "note": ""}
            notice = Entry("notice", words, data=data, session=session.id, turn=turn.id)
            await persist(context.clock, context.stores.transcript.append, [notice])
            context.feed.notify(session.id)
        return {
            "link": made.link,
            "branch": made.branch,
            "commit": made.commit,
            "problem": context.vault.redact(shipped.note),
            "state": "pushed" if shipped.pushed else "unchanged",
        }

    async def _read_checks(self, caller: Caller, _arguments: Arguments) -> Result:
        context, session = self._context, caller.session
        record = context.workspaces.checkout(session)
        if record is None or not record.branch or not (record.sent or record.way == "existing"):
            raise ToolRefused(wording.NOTHING_PROPOSED)
        try:
            found = await self._forge.examine(record.repository, session.key.agent, record.branch)
        except RepositoryError as error:
            raise ToolRefused(context.vault.redact(str(error))) from error
        if found is None:
            raise ToolRefused(wording.NO_PULL_REQUEST.format(branch=record.branch))
        return self._show(found)

    def _show(self, found: Examined) -> dict[str, Any]:
        return {
            "note": wording.CHECKS_ARE_DATA,
            "link": found.link,
            "commit": found.commit,
            "checks": found.judged.checks or "none",
            "review": found.judged.review or "none",
            "failed": [self._clean(each, 200) for each in found.failed[:50]],
            "running": [self._clean(each, 200) for each in found.running[:50]],
            "excerpt": self._clean(found.excerpt, EXCERPT_CHARACTERS),
            "reviews": [
                {
                    "by": self._clean(each.by, 100),
                    "verdict": each.verdict,
                    "text": self._clean(each.text, REMARK_CHARACTERS),
                }
                for each in found.remarks
            ],
        }

    def _clean(self, text: str, most: int) -> str:
        clean = self._context.vault.redact(strip(text).text)
        more = len(clean) - most
        return clean if more <= 0 else clean[:most] + wording.CUT.format(more=more)
