"""Lists the agents for pages that show them, or have them at their side."""

from __future__ import annotations

import asyncio
from typing import Final

from fastapi.responses import HTMLResponse

from app.agents.files import OWN, SHARED, AgentFile
from app.agents.registry import explain_fixed, label_origin
from app.core.runtime import Runtime
from app.server.login import Visitor
from app.server.page import queries
from app.server.page.assets import addresses
from app.server.page.routes import HEADERS
from app.server.page.view import done
from app.server.page.view.agents import AgentLine, AgentList, FileLine
from app.services import PAGE, label_of

SHARED_BASE: Final = "/agent-files"
"""The pages of the files of all agents."""
LOGS_SHOWN: Final = 14
"""Daily logs that the page of an agent lists: two weeks."""


async def list_agents(runtime: Runtime, who: Visitor, words: str = "") -> AgentList:
    """List all agents, with words about what was asked for, if any."""
    counts, records = await runtime.stores.sessions.counts(), runtime.agents.records
    gone = [(each.name, each.removed_at) for each in records if each.removed_at is not None]
    roster, source = queries.roster_of(runtime), runtime.configuration.agents_source
    return AgentList(
        lines=tuple(
            AgentLine(
                agent=roster[each.id],
                driver=each.program.title if each.program else "",
                model=each.config.model or "",
                services=tuple(
                    label_of(service) for service in runtime.services_of(each.id) if service != PAGE
                ),
                sessions=counts.get(each.id, 0),
                stored=each.config.source == "stored",
                origin=label_origin(each.config.source, source),
                fixed=explain_fixed(each.config, source),
            )
            for each in runtime.agents.values()
        ),
        files=await list_files(runtime, None),
        removed=tuple(sorted(gone, key=lambda each: each[1], reverse=True)),
        csrf=who.csrf,
        role=who.role.value,
        assets=addresses(),
        words=words,
        told=done.sentence(who.done),
    )


async def list_files(runtime: Runtime, agent: str | None, name: str = "") -> tuple[FileLine, ...]:
    """List the files that there can be, and the last daily logs."""
    found = await asyncio.to_thread(runtime.files.read_all, agent)
    names, base = (SHARED, SHARED_BASE) if agent is None else (OWN, f"/agents/{name}/files")
    there = {file.path: file for file in found}
    logs = [path for path in there if path not in names][:LOGS_SHOWN]
    missing = AgentFile("", 0, 0.0)
    return tuple(
        FileLine(
            path,
            f"{base}/{path}",
            there[path].size if path in there else None,
            there.get(path, missing).problem,
        )
        for path in (*names, *logs)
    )


def to_html(page: str, status: int = 200) -> HTMLResponse:
    """Answer with a page."""
    return HTMLResponse(page, status_code=status, headers=HEADERS)
