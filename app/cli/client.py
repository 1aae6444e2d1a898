"""Calls the API of a running bridge: one method for each thing that a command needs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final, Literal
from urllib.parse import quote

import httpx

from app.cli.connection import BridgeRefused, Connection, connect, not_running
from app.config import Configuration
from app.config.agents import NAME
from app.errors import NotFound
from app.features.erasing.model import ErasedOut, PersonOut
from app.features.pause.shapes import DrainOut, PauseOut, PauseScope
from app.features.schedules.model import ScheduleIn, ScheduleOut
from app.model.types import SessionState
from app.server.agent_shapes import AgentDetail, AgentOut, FileDetail, FileOut, NoteOut
from app.server.conversation_shapes import ContentsOut, ConversationOut
from app.server.grants_api import GrantOut
from app.server.shapes import (
    AskOut,
    EntryOut,
    LinkOut,
    NewSession,
    Page,
    SessionDetail,
    SessionOut,
    SessionTurn,
    TurnOut,
    UnfinishedOut,
)
from app.server.spending_api import SpendingOut

REMOVAL: Final = httpx.Timeout(120.0, connect=2.0)
"""When an agent is removed, its running work is stopped and its last messages are answered."""
ERASURE: Final = httpx.Timeout(3600.0, connect=2.0)
"""To purge a text, every file and every object of every repository is read."""
MOST_LISTED: Final = 500
"""The most that the API lists at once."""


@asynccontextmanager
async def connected(configuration: Configuration) -> AsyncIterator[Client | None]:
    """Connect to the bridge that holds DATA_DIR; None if there is none, or it ends meanwhile.

    Raises:
        BridgeUnreachable: a process holds DATA_DIR and does not answer.
    """
    async with connect(configuration) as bridge:
        yield None if bridge is None else Client(bridge)


@asynccontextmanager
async def connected_to_running(configuration: Configuration) -> AsyncIterator[Client]:
    """Connect to the bridge that holds DATA_DIR.

    Raises:
        BridgeUnreachable: there is none, or it does not answer.
    """
    async with connected(configuration) as client:
        if client is None:
            raise not_running(configuration)
        yield client


class Client:
    """The calls to a running bridge that the commands need."""

    def __init__(self, api: Connection) -> None:
        self._api = api

    async def agents(self) -> list[AgentOut]:
        """List the agents."""
        return (await self._api.get(Page[AgentOut], "/agents")).items

    async def agent(self, name: str) -> AgentDetail:
        """Read an agent with its entry."""
        return await self._api.get(AgentDetail, _agent_path(name))

    async def add_agent(self, new: dict[str, Any]) -> AgentOut:
        """Add an agent: its name and the keys of its entry."""
        return await self._api.send(AgentOut, "/agents", new)

    async def change_agent(self, name: str, changes: dict[str, Any]) -> AgentOut:
        """Change some keys of an agent's entry; None removes one."""
        path = _agent_path(name)
        return self._api.read(AgentOut, await self._api.request("PATCH", path, json=changes))

    async def remove_agent(self, name: str) -> None:
        """Remove an agent."""
        await self._api.request("DELETE", _agent_path(name), timeout=REMOVAL)

    async def rename_agent(self, name: str, to: str) -> AgentOut:
        """Give an agent another name."""
        return await self._api.send(AgentOut, f"{_agent_path(name)}/rename", {"to": to})

    async def choose_default(self, name: str) -> AgentOut:
        """Let requests without a name go to an agent."""
        return await self._api.send(AgentOut, f"{_agent_path(name)}/default", {})

    async def files(self, agent: str | None) -> list[FileOut]:
        """List the files of an agent; None for those of all agents."""
        return (await self._api.get(Page[FileOut], _files_path(agent))).items

    async def file(self, agent: str | None, path: str) -> FileDetail:
        """Read a file."""
        return await self._api.get(FileDetail, _file_path(agent, path))

    async def write_file(self, agent: str | None, path: str, text: str) -> None:
        """Write a file."""
        await self._api.request("PUT", _file_path(agent, path), json={"text": text})

    async def delete_file(self, agent: str | None, path: str) -> None:
        """Delete a file."""
        await self._api.request("DELETE", _file_path(agent, path))

    async def undo_file(self, agent: str | None, path: str) -> FileDetail:
        """Undo the last change of a file."""
        return await self._api.send(FileDetail, f"{_file_path(agent, path)}/undo", {})

    async def reload_agents(self) -> list[AgentOut]:
        """Let the bridge read the file with its agents again; returns those it has then."""
        answer = await self._api.request("POST", "/agents/reload", timeout=REMOVAL)
        return self._api.read(Page[AgentOut], answer).items

    async def count_sessions(self, agent: str) -> int:
        """Count the sessions of an agent that were not removed."""
        count, query = 0, {"agent": agent, "limit": MOST_LISTED}
        while True:
            page = await self._api.get(Page[SessionOut], "/sessions", query)
            count += sum(each.state != SessionState.REMOVED for each in page.items)
            if page.next is None:
                return count
            query["before"] = page.next

    async def notes(self, agent: str, words: str) -> list[NoteOut]:
        """List what an agent remembers, or what of it has all these words."""
        path = f"{_agent_path(agent)}/memory"
        return (await self._api.get(Page[NoteOut], path, {"q": words})).items

    async def remove_note(self, agent: str, day: str, note: str) -> None:
        """Remove one note of an agent."""
        path = f"{_agent_path(agent)}/memory/{quote(day, safe='')}/{quote(note, safe='')}"
        await self._api.request("DELETE", path)

    async def probe(self, agent: str) -> AgentOut:
        """Have an agent checked now."""
        return await self._api.send(AgentOut, f"{_agent_path(agent)}/probe", {})

    async def sessions(
        self, *, agent: str | None, state: str | None, limit: int
    ) -> list[SessionOut]:
        """List sessions, the one used last first."""
        wanted = {"agent": agent, "state": state, "limit": limit}
        query = {name: value for name, value in wanted.items() if value is not None}
        return (await self._api.get(Page[SessionOut], "/sessions", query)).items

    async def session(self, session: int) -> SessionDetail:
        """Read a session with its turns."""
        return await self._api.get(SessionDetail, f"/sessions/{session}")

    async def transcript(self, session: int, *, after: int = 0) -> list[EntryOut]:
        """Read what happened after a row, in order."""
        found: list[EntryOut] = []
        while True:
            path = f"/sessions/{session}/transcript"
            page = await self._api.get(Page[EntryOut], path, {"after": after})
            found += page.items
            if page.next is None:
                return found
            after = int(page.next)

    async def conversations(self, **wanted: str | int | bool | None) -> list[ConversationOut]:
        """List or search conversations, the one used last first."""
        query = {name: value for name, value in wanted.items() if value is not None}
        return (await self._api.get(Page[ConversationOut], "/conversations", query)).items

    async def conversation(self, number: int) -> ConversationOut:
        """Read a conversation with its sessions."""
        return await self._api.get(ConversationOut, f"/conversations/{number}")

    async def change_conversation(self, number: int, **what: str | bool) -> ConversationOut:
        """Rename, pin or archive a conversation."""
        answer = await self._api.request("PATCH", f"/conversations/{number}", json=what)
        return self._api.read(ConversationOut, answer)

    async def clear_conversation(self, number: int) -> ConversationOut:
        """Delete what was said in a conversation."""
        answer = await self._api.request("POST", f"/conversations/{number}/clear", timeout=REMOVAL)
        return self._api.read(ConversationOut, answer)

    async def fork_conversation(self, number: int, after: int | None) -> ConversationOut:
        """Copy a conversation into a new thread."""
        where = {} if after is None else {"after": after}
        return await self._api.send(ConversationOut, f"/conversations/{number}/fork", where)

    async def contents(self, number: int) -> ContentsOut:
        """Read what would be deleted with a conversation."""
        return await self._api.get(ContentsOut, f"/conversations/{number}/contents")

    async def delete_conversation(self, number: int, *, discard: bool) -> None:
        """Delete a conversation."""
        query = {"discard": discard}
        await self._api.request("DELETE", f"/conversations/{number}", params=query, timeout=REMOVAL)

    async def export(self, number: int, form: str) -> str:
        """Export a whole conversation."""
        path = f"/conversations/{number}/export"
        return (await self._api.request("GET", path, params={"format": form})).text

    async def purge(self, text: str, *, discard: bool) -> ErasedOut:
        """Take a text out of everything."""
        asked = {"text": text, "discard": discard}
        answer = await self._api.request("POST", "/purges", json=asked, timeout=ERASURE)
        return self._api.read(ErasedOut, answer)

    async def people(self, words: str) -> list[PersonOut]:
        """List the people whose name or id has these words."""
        return (await self._api.get(Page[PersonOut], "/people", {"q": words})).items

    async def forget(self, service: str, who: str) -> ErasedOut:
        """Forget a person."""
        path = f"/people/{quote(service, safe='')}/{quote(who, safe='')}"
        return self._api.read(ErasedOut, await self._api.request("DELETE", path, timeout=ERASURE))

    async def spending(self) -> list[SpendingOut]:
        """List what today has cost so far."""
        return (await self._api.get(Page[SpendingOut], "/spending")).items

    async def begin(self, new: NewSession) -> SessionTurn:
        """Say something to an agent.

        Raises:
            NotFound: there is no such agent.
        """
        try:
            return await self._api.send(SessionTurn, "/sessions", new.model_dump(exclude_none=True))
        except BridgeRefused as refused:
            if refused.status == httpx.codes.NOT_FOUND:
                raise NotFound("agent", new.agent) from None
            raise

    async def turn(self, session: int, turn: int) -> TurnOut:
        """Read one turn of a session."""
        found = {each.id: each for each in (await self.session(session)).turns}
        if turn not in found:
            raise NotFound("turn", turn)
        return found[turn]

    async def answer(self, ask: int, answer: str, *, in_words: bool = False) -> None:
        """Answer an ask, with one of its options or in words."""
        given = {"text" if in_words else "option": answer}
        await self._api.send(AskOut, f"/asks/{ask}/answer", given)

    async def login_link(self) -> LinkOut:
        """Make a link that logs in the person who opens it first."""
        return await self._api.send(LinkOut, "/login-links", {})

    async def schedules(self, agent: str | None) -> list[ScheduleOut]:
        """List schedules, of one agent or of all."""
        query = {} if agent is None else {"agent": agent}
        return (await self._api.get(Page[ScheduleOut], "/schedules", query)).items

    async def add_schedule(self, new: ScheduleIn) -> ScheduleOut:
        """Make a schedule."""
        return await self._api.send(ScheduleOut, "/schedules", new.model_dump(exclude_none=True))

    async def change_schedule(self, schedule: int, change: str) -> ScheduleOut:
        """Pause, resume or run a schedule."""
        return await self._api.send(ScheduleOut, f"/schedules/{schedule}/{change}", {})

    async def remove_schedule(self, schedule: int) -> None:
        """End a schedule."""
        await self._api.request("DELETE", f"/schedules/{schedule}")

    async def grants(self, agent: str | None, state: str | None) -> list[GrantOut]:
        """List what people always allow, all of it."""
        query = {"agent": agent, "state": state, "limit": MOST_LISTED}
        known = {name: value for name, value in query.items() if value is not None}
        found: list[GrantOut] = []
        while True:
            page = await self._api.get(Page[GrantOut], "/grants", known)
            found += page.items
            if page.next is None:
                return found
            known["after"] = page.next

    async def revoke_grant(self, grant: int) -> None:
        """Take back what a person always allowed."""
        await self._api.request("DELETE", f"/grants/{grant}")

    async def pauses(self) -> list[PauseOut]:
        """List what is paused."""
        return (await self._api.get(Page[PauseOut], "/pauses")).items

    async def pause(self, scope: PauseScope) -> list[PauseOut]:
        """Pause something; returns all that is paused then."""
        return (await self._api.send(Page[PauseOut], "/pauses", _scope(scope))).items

    async def resume(self, scope: PauseScope) -> list[PauseOut]:
        """Let something go on; returns what is paused still."""
        return (await self._api.send(Page[PauseOut], "/pauses/resume", _scope(scope))).items

    async def drain(self, method: Literal["GET", "POST", "DELETE"] = "GET") -> DrainOut:
        """Look how far a drain is, begin one, or end it."""
        return self._api.read(DrainOut, await self._api.request(method, "/drain"))

    async def cancel(self, session: int) -> None:
        """Stop what runs in a session."""
        await self._api.send(SessionOut, f"/sessions/{session}/cancel", {})

    async def follow(self, session: int) -> AsyncIterator[EntryOut | UnfinishedOut]:
        """Yield every row of a session, and all that follow until the bridge ends."""
        async with aclosing(self._api.stream(f"/sessions/{session}/events")) as events:
            async for event, data in events:
                if event == "entry":
                    yield EntryOut.model_validate_json(data)
                elif event == "unfinished":
                    yield UnfinishedOut.model_validate_json(data)


def _scope(scope: PauseScope) -> dict[str, Any]:
    return scope.model_dump(by_alias=True, exclude_defaults=True)


def _agent_path(name: str) -> str:
    """Return the path of an agent; what is not a name would be the path of something else.

    Raises:
        NotFound: no agent can have that name.
    """
    if not NAME.fullmatch(name):
        raise NotFound("agent", name)
    return f"/agents/{name}"


def _files_path(agent: str | None) -> str:
    return "/files" if agent is None else f"{_agent_path(agent)}/files"


def _file_path(agent: str | None, path: str) -> str:
    if {"", ".", ".."} & set(path.split("/")):  # an address with these would mean another one
        raise NotFound("file", path)
    return f"{_files_path(agent)}/{quote(path)}"
