"""Has agents work together as people ask: begins what a command says, and goes on as turns end.

One task per group takes the steps that are due. What there is to do is read from the rows, so that
a start goes on with every group that is not over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, get_args

from typing_extensions import override

from app.core.runtime import Runtime
from app.errors import Conflict
from app.features.part import Part
from app.features.together import model, wording
from app.features.together.group import Grouping, Panel, Race
from app.features.together.model import Review, Wish
from app.features.together.review import ReviewLoop, Reviews
from app.features.together.store import GroupStore, ReviewStore
from app.model.agents import Arguments, Caller, Result, Tool
from app.model.inbound import Heard
from app.model.keys import PlaceKey
from app.model.proposals import VERDICTS, ReviewFinding
from app.model.types import Session
from app.signals import Facts, Topic
from app.tasks import Tasks

LOOK_SECONDS: Final = 60.0
"""How often a group is looked at although nothing was reported: a report may be lost."""


class Together(Part):
    """Everything that several agents do together in one bridge."""

    command_names = get_args(model.Act)
    command_help = wording.HELP

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        store = runtime.stores.open(ReviewStore)
        self.grouping = grouping = Grouping(runtime, runtime.stores.open(GroupStore))
        self._review = ReviewLoop(runtime, grouping, store)
        self._several: Mapping[str, Panel | Race] = {
            "panel": Panel(grouping),
            "race": Race(runtime, grouping),
        }
        self.reviews = Reviews(
            store,
            grouping,
            runtime.stores.sessions,
            runtime.workspaces,
            runtime.checkouts,
            runtime.forge,
            runtime.clock,
            names=runtime.agents.names,
            home_of=self._home_of,
            signals=runtime.signals,
        )
        self._tasks = Tasks("together")
        self._followed: set[str] = set()
        self._signals = runtime.signals
        self._signals.on(Topic.GROUP, self._hear)
        self._signals.on_sweep(self._look_again)

    @override
    def start(self) -> None:
        self.reviews.start()
        self._go_on()

    @override
    async def close(self) -> None:
        await self._tasks.close()
        await self.reviews.close()

    @override
    def read_command(self, line: str, agents: Mapping[str, str]) -> Wish | None:
        return model.read_wish(line, agents)

    @override
    async def obey(self, command: object, heard: Heard, agents: Sequence[str]) -> str:
        """Carry out a person's command in a place; returns what to say. Repeating changes nothing.

        `agents` are those that the message is meant for.
        """
        assert isinstance(command, Wish)
        if heard.speaker.kind != "person":
            return wording.NO_PERSON
        group = f"{command.act}:{heard.place}:{heard.message_id}"
        try:
            words = await self._begin(group, command, heard, agents)
        except Conflict as error:
            return str(error)
        self._follow(group)
        return words

    @override
    async def stop(self, place: PlaceKey) -> bool:
        running = self.grouping.store.running(place)
        if running:
            await self.grouping.delegations.cancel(running)
        return bool(running)

    async def _begin(self, group: str, wish: Wish, heard: Heard, agents: Sequence[str]) -> str:
        here = self.grouping.sessions.in_place(heard.place)
        if wish.act == "review":
            [reviewer] = wish.agents
            author = self._review.find_author(here, reviewer)
            return await self._review.begin(
                group, author, reviewer, heard.speaker, service=heard.place.service
            )
        present = [each.key.agent for each in here]
        named = [each for each in wish.agents if each in present]
        host = next(iter((*named, *agents, *present, *wish.agents)))
        session = await self.grouping.enter(heard, host)
        return await self._several[wish.act].begin(group, session, wish, heard)

    async def have_reviewed(self, author: Session, turn: int, reviewer: str, notes: str) -> str:
        """Have the work of an agent reviewed on its own wish; returns what to say."""
        group = f"review:{author.id}:{turn}"
        person = self.grouping.person_of(turn)
        words = await self._review.begin(group, author, reviewer, person, turn=turn, notes=notes)
        self._follow(group)
        return words

    async def _home_of(self, review: Review) -> tuple[int, str]:
        """Tell where people see a review, and who speaks there if not the agent of the place."""
        branch = self.runtime.stores.tree.of_turn(review.turn)
        if branch is None:
            return review.session, ""
        voice = await self.grouping.delegations.showing.find_voice(branch)
        return branch.root_session, "" if voice is None else voice.agent

    def _go_on(self) -> None:
        """Go on with what an earlier run of the bridge, or another member, began."""
        for group in self.grouping.store.unfinished():
            self._follow(group)

    def _hear(self, facts: Facts) -> None:
        if self._signals.is_leader:
            self._follow(facts["group"])

    def _look_again(self) -> None:
        if self._signals.is_leader:
            self._go_on()

    def _follow(self, group: str) -> None:
        """Take the steps of a group as they become due, in a task; only the leader takes them."""
        if not self._signals.is_leader:
            self._signals.send(Topic.GROUP, group=group)
        elif group not in self._followed:
            self._followed.add(group)
            self._tasks.start(self._advance(group), name=group)

    async def _advance(self, group: str) -> None:
        rows_of = self.grouping.rows.in_group
        try:
            while rows := rows_of(group):
                act = self._several.get(rows[0].kind, self._review)
                sessions = {each for row in rows for each in (row.session, row.root_session)}
                with self.runtime.feed.watching(*sessions) as changed:
                    if await act.advance(group, rows):
                        return
                    if len(rows_of(group)) == len(rows):
                        with suppress(TimeoutError):
                            async with asyncio.timeout(LOOK_SECONDS):
                                await changed.wait()
        finally:
            self._followed.discard(group)


MOST_COMMENTS: Final = 50
"""Comments of one review: more than a person reads."""
BODY_CHARACTERS: Final = 20_000
COMMENT_CHARACTERS: Final = 4_000
PATH_CHARACTERS: Final = 500
MAX_LINE: Final = 9_999_999

SUBMIT: Final = """\
Submit your review of the work that you were asked to review. Call it once, when you have read \
the diff and know your verdict. `approve`: it can be merged as it is. `request_changes`: the \
author has to change something; say what in `comments`, one per place in the code. `comment`: \
remarks without a verdict. A line is counted in the file after the change, and part of the diff. \
On GitHub this becomes a real review under your name; the author gets your comments. Do not repeat \
the review in your answer."""

REVIEW: Final = """\
Have another agent review your work. Call pr_open first, or push your branch: the reviewer sees \
what is pushed. It works while you go on; end your turn soon. If it requests changes, you get its \
findings as your next turn, and then it looks again. People see all of it."""


def list_tools(together: Together) -> Sequence[Tool]:
    """List the tools for reviews."""
    delegations = together.grouping.delegations
    parameters = {
        "agent": {
            "type": "string",
            "minLength": 1,
            "maxLength": 100,
            "description": "The reviewer's name, as agents_list gives it.",
        },
        "notes": {
            "type": "string",
            "maxLength": BODY_CHARACTERS,
            "default": "",
            "description": "What the reviewer should know about your work.",
        },
    }

    async def review(caller: Caller, arguments: Arguments) -> Result:
        reviewer = delegations.rights.find(caller.agent, caller.turn, str(arguments["agent"]))
        notes = str(arguments.get("notes", ""))
        words = await together.have_reviewed(caller.session, caller.turn.id, reviewer.id, notes)
        return {"state": "begun", "note": words}

    return (
        make_submit_tool(together.reviews),
        Tool("review", REVIEW, parameters, ("reviews.ask",), review, off=delegations.rights.off),
    )


def make_submit_tool(reviews: Reviews) -> Tool:
    """Return the tool with which a reviewer gives its verdict."""
    comment = {
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1, "maxLength": PATH_CHARACTERS},
            "line": {"type": "integer", "minimum": 1, "maximum": MAX_LINE},
            "body": {"type": "string", "minLength": 1, "maxLength": COMMENT_CHARACTERS},
        },
        "required": ["path", "line", "body"],
        "additionalProperties": False,
    }
    parameters = {
        "verdict": {"type": "string", "enum": list(VERDICTS)},
        "body": {
            "type": "string",
            "maxLength": BODY_CHARACTERS,
            "default": "",
            "description": "Your summary, in Markdown.",
        },
        "comments": {
            "type": "array",
            "items": comment,
            "maxItems": MOST_COMMENTS,
            "default": [],
            "description": "What you say about single lines of the diff.",
        },
    }
    run = partial(_submit, reviews)
    return Tool("review_submit", SUBMIT, parameters, ("reviews.write",), run)


async def _submit(reviews: Reviews, caller: Caller, arguments: Arguments) -> Result:
    findings = [ReviewFinding.read(each) for each in arguments.get("comments", ())]
    body, verdict = str(arguments.get("body", "")), arguments["verdict"]
    review = await reviews.submit(
        caller.session, caller.turn.id, verdict, body=body, findings=findings
    )
    is_same = (review.verdict, len(review.findings)) == (verdict, len(findings))
    return {
        "review": review.id,
        "verdict": review.verdict,
        "comments": len(review.findings),
        "link": review.link,
        "note": "" if is_same else wording.GIVEN_BEFORE,
    }
