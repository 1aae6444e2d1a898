"""Lets an agent reach the people it works for: ask them, and read and post where they asked.

A question outlives the call and the turn: its answer reaches the agent in any case, once. A post is
stored under a key made of turn and content: a repeated call does not repeat it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final

from app.core.files.outgoing import FILES, NotTaken, listed
from app.core.tools import wording
from app.core.turns.engine import EmbeddedTurnEngine
from app.core.turns.turn_context import TurnContext
from app.markdown.hidden import strip
from app.model.agents import Arguments, Caller, Result, Tool, ToolRefused
from app.model.delegation import SERVICE
from app.model.keys import SessionKey
from app.model.posts import MadeFile, NewPost, PostContent
from app.model.text import size_words
from app.model.types import Entry
from app.model.updates import ASK_PERSON, AskOption, AskRequest
from app.retry import persist
from app.store.tree import DelegationTree

LONGEST_SECONDS: Final = 300
"""How long one call waits, unless the agent's program gives up sooner."""
QUESTION_CHARACTERS: Final = 1_500
OPTIONS: Final = 8
OPTION_CHARACTERS: Final = 75
"""The longest label of a button on the strictest platform."""


class PeopleTools:
    """The tool with which agents ask people."""

    def __init__(self, engine: EmbeddedTurnEngine) -> None:
        self._engine = engine

    def tools(self) -> Sequence[Tool]:
        """List the tools."""
        return (
            Tool(
                "ask_person",
                wording.ASK_PERSON.format(longest=LONGEST_SECONDS),
                {
                    "question": {
                        "type": "string",
                        "minLength": 1,
                        "maxLength": QUESTION_CHARACTERS,
                        "description": "The question. It must make sense on its own.",
                    },
                    "options": {
                        "type": "array",
                        "maxItems": OPTIONS,
                        "uniqueItems": True,
                        "items": {
                            "type": "string",
                            "minLength": 1,
                            "maxLength": OPTION_CHARACTERS,
                        },
                        "default": [],
                        "description": "Short answers to choose from, shown as buttons.",
                    },
                    "free_text": {
                        "type": "boolean",
                        "default": False,
                        "description": "Whether any words answer it; always so without options.",
                    },
                    "wait_seconds": {
                        "type": "integer",
                        "minimum": 0,
                        "maximum": LONGEST_SECONDS,
                        "default": LONGEST_SECONDS,
                        "description": "How long to wait for the answer in this call.",
                    },
                },
                ("people.ask",),
                self._ask,
            ),
        )

    async def _ask(self, caller: Caller, arguments: Arguments) -> Result:
        request = build_question(
            arguments["question"],
            arguments.get("options", ()),
            free_text=arguments.get("free_text", False),
        )
        patience = min(arguments.get("wait_seconds", LONGEST_SECONDS), caller.patience)
        ask = await self._engine.ask(caller.session.id, request, patience=patience)
        if ask is None:
            raise ToolRefused(wording.NO_TURN)
        match ask.state:
            case "answered":
                return {"state": "answered", "answer": ask.answer_name, "by": ask.answered_by}
            case "open":
                return {"state": "open", "note": wording.STILL_OPEN}
            case "expired":
                return {"state": "unanswered", "note": wording.UNANSWERED}
            case _:
                return {"state": "closed", "note": wording.CLOSED}


def build_question(question: str, options: Sequence[str], *, free_text: bool) -> AskRequest:
    """Make the ask of a question; the same words make the same ask."""
    words = json.dumps([question, list(options), free_text]).encode()
    return AskRequest(
        call=ASK_PERSON,
        title=question,
        options=tuple(
            AskOption(f"option-{number}", name, "answer") for number, name in enumerate(options, 1)
        ),
        arguments_hash=f"{ASK_PERSON}:{hashlib.sha256(words).hexdigest()}",
        kind="question",
        free_text=free_text or not options,
        tool_kind=ASK_PERSON,
    )


POSTS: Final = 5
"""Posts of one turn: progress worth a message is rare, and the answer is posted anyway."""
POST_CHARACTERS: Final = 2_000
ENTRIES: Final = 50
"""The longest page of a history."""
ENTRY_CHARACTERS: Final = 4_000
HISTORY_CHARACTERS: Final = 40_000
"""What one page of a history shows: some ten pages of text."""
_LAST: Final = 2**62
"""After every row of the transcript."""


@dataclass(frozen=True, slots=True)
class HomePlace:
    """Where people asked for what an agent does now."""

    session: int
    turn: int | None
    surface: SessionKey
    is_own: bool
    """Whether people asked the agent itself."""


class PlaceTools:
    """The tools with which agents read and post where they were asked."""

    def __init__(self, context: TurnContext, tree: DelegationTree) -> None:
        self._context = context
        self._tree = tree

    def tools(self) -> Sequence[Tool]:
        """List the tools."""
        return (
            Tool(
                "place_history",
                wording.PLACE_HISTORY,
                {
                    "limit": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": ENTRIES,
                        "default": 20,
                        "description": "How many messages and answers to read.",
                    },
                    "before": {
                        "type": "integer",
                        "minimum": 0,
                        "default": 0,
                        "description": "Read what came before this `number`; 0 reads the last.",
                    },
                },
                ("place.read",),
                self._read,
                brings_words=True,
            ),
            Tool(
                "place_post",
                wording.PLACE_POST.format(most=POSTS),
                {
                    "text": {
                        "type": "string",
                        "minLength": 1,
                        "maxLength": POST_CHARACTERS,
                        "description": "What to say.",
                    }
                },
                ("place.write",),
                self._post,
            ),
            Tool(
                "place_post_file",
                wording.PLACE_POST_FILE.format(most=FILES),
                {
                    "path": {
                        "type": "string",
                        "minLength": 1,
                        "maxLength": 1_000,
                        "description": "The file: relative to your working folder, or absolute.",
                    }
                },
                ("place.write",),
                self._post_file,
            ),
        )

    def _find_home(self, caller: Caller) -> HomePlace:
        """Tell where people asked for what an agent does now: one place, never a further one.

        What an agent does for another one began where a person asked the first: that person talks
        there and sees what is said there.

        Raises:
            ToolRefused: there is no such place any more.
        """
        session, turn = caller.session, caller.turn
        if turn.surface.service != SERVICE:
            return HomePlace(session.id, turn.id, turn.surface, is_own=True)
        branch = self._tree.of_turn(turn.id)
        if branch is None:
            raise ToolRefused(wording.NO_PLACE)
        return HomePlace(branch.root_session, branch.root_turn, branch.root, is_own=False)

    async def _read(self, caller: Caller, arguments: Arguments) -> Result:
        home = self._find_home(caller)
        limit, before = arguments.get("limit", 20), arguments.get("before", 0) or _LAST
        found = await self._context.stores.transcript.said(home.surface, before=before, limit=limit)
        shown: list[dict[str, Any]] = []
        room = HISTORY_CHARACTERS
        for entry in reversed(found):
            line = self._show(entry)
            room -= len(line["text"])
            if room < 0:
                break
            shown.insert(0, line)
        more = len(shown) < len(found) or len(found) == limit
        return {
            "note": wording.HISTORY_IS_DATA,
            "said": shown,
            "earlier": shown[0]["number"] if shown and more else None,
        }

    def _show(self, entry: Entry) -> dict[str, Any]:
        is_person = entry.kind == "message"
        text = self._context.vault.redact(strip(entry.text).text)
        more = len(text) - ENTRY_CHARACTERS
        return {
            "number": entry.id,
            "at": f"{datetime.fromtimestamp(entry.at, UTC):%Y-%m-%d %H:%M}Z",
            "by": entry.speaker if is_person else self._context.name_of(entry.speaker),
            "kind": "message" if is_person else "answer",
            "text": text if more <= 0 else text[:ENTRY_CHARACTERS] + wording.CUT.format(more=more),
        }

    async def _post(self, caller: Caller, arguments: Arguments) -> Result:
        home = self._find_home(caller)
        text = self._context.vault.redact(arguments["text"]).strip()
        if not text:
            raise ToolRefused(wording.EMPTY_POST)
        words = self._voice(caller, text)
        told = text if home.is_own else words
        content = PostContent(kind="notice", note=told)
        await self._say(caller, home, "posted", text, content, Entry("notice", words), most=POSTS)
        return {"state": "posted"}

    async def _post_file(self, caller: Caller, arguments: Arguments) -> Result:
        context, home = self._context, self._find_home(caller)
        own = context.workspaces.outgoing(caller.session)
        folder = context.workspaces.folder(caller.session)
        folders = [each for each in (folder, own) if each is not None and each.is_dir()]
        try:
            file, at = await asyncio.to_thread(context.outgoing.pick, arguments["path"], folders)
        except NotTaken as reason:
            raise ToolRefused(wording.FILE_REFUSED.format(why=reason)) from reason
        words = self._voice(caller, wording.MADE.format(files=listed((file,))))
        entry = Entry("notice", words, data={"files": [asdict(file)]})
        content = self._show_file(home, file, words)
        await self._say(caller, home, "gave", file.url, content, entry, most=FILES)
        if at == own:
            await asyncio.to_thread(context.outgoing.drop, arguments["path"], own)
        return {"state": "posted", "name": file.name, "size": size_words(file.size)}

    def _show_file(self, home: HomePlace, file: MadeFile, words: str) -> PostContent:
        adapter = self._context.adapters.get(home.surface.adapter)
        if adapter is not None and adapter.shares_files:
            return PostContent(kind="files", files=(file,))
        return PostContent(kind="notice", note=" ".join(filter(None, (words, file.link))))

    def _voice(self, caller: Caller, text: str) -> str:
        """Say who speaks: on the page, and where another agent posts it."""
        name = self._context.name_of(caller.agent)
        return wording.SAYS.format(agent=name, text=text)

    async def _say(
        self,
        caller: Caller,
        home: HomePlace,
        what: str,
        name: str,
        content: PostContent,
        entry: Entry,
        *,
        most: int,
    ) -> None:
        """Post something once, also if the call is repeated."""
        context = self._context
        digest = hashlib.sha256(name.encode()).hexdigest()[:32]
        new = NewPost(
            f"{what}:{caller.turn.id}:{digest}", home.surface, content, home.session, home.turn
        )
        said = Entry(entry.kind, entry.text, data=entry.data, session=home.session, turn=home.turn)
        post = await persist(context.clock, context.stores.posts.say, new, said, most=most)
        if post is None:
            raise ToolRefused(wording.TOO_MANY_POSTS.format(most=most))
        context.outbox.send(post)
        context.feed.notify(home.session)
