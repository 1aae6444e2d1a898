"""Shows a turn on a pull request as a check with buttons, where the App may write checks.

Nothing depends on it: comments show the same, and a reply does what a button does. How a turn
ended says nothing about the commit, so no check of ours ever fails.

GitHub shows buttons only on completed runs, and a completed run never works again. So a question
completes the run, and its answer begins another one of the same name, which GitHub shows instead.
"""

from __future__ import annotations

import logging
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import httpx
from gidgethub import GitHubException

from app.clock import Clock
from app.errors import PostError, PostRejected
from app.model.ask_wording import markdown
from app.model.posts import PostContent, PostSend
from app.model.updates import AskOption
from app.services.github import wording
from app.services.github.api import GithubApi
from app.services.github.events import STOP, Rerun, name_button
from app.services.github.names import Name, Spot
from app.services.github.transport import Gone

logger = logging.getLogger(__name__)

AGAIN_SECONDS = 3600.0
"""How long an App that may not write checks does not try again: the permission may be added."""
MOST_ACTIONS = 3
LABEL_CHARACTERS = 20
DESCRIPTION_CHARACTERS = 40
"""GitHub's limits for the buttons of a check."""

_RUN = re.compile(r"check-([0-9]{1,20})")
_FIRST = ("allow_once", "reject_once")


@dataclass(frozen=True, slots=True)
class _Run:
    """The latest check run of a turn that is not over."""

    id: int
    marker: str
    commit: str = ""
    """What it is shown on; not known of one that was begun before a restart."""
    ask: int | None = None
    """The question that completed it."""


class Board:
    """The checks that one agent's App shows."""

    def __init__(self, api: GithubApi, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._open: dict[Spot, _Run] = {}
        self._unended: dict[int, tuple[Spot, dict[str, Any]]] = {}
        self._issues: set[Spot] = set()
        self._refused: dict[str, float] = {}

    async def show(self, spot: Spot, post: PostSend, name: Name, title: str) -> Name:
        """Show what a post says in the check of its turn; returns the name that remembers it."""
        try:
            if post.content.kind == "turn":
                return await self._turn(spot, post, name, title)
            if post.content.kind == "ask":
                await self._ask(spot, post.content, title)
        except (PostError, GitHubException, httpx.HTTPError) as error:
            logger.info("cannot update the check on %s: %s", spot, error)
        return name

    async def rerun(self, asked: Rerun, title: str) -> None:
        """Answer people who want checks to run again: a queued suite waits for a completed run.

        The check of a turn that is at work there begins again instead.
        """
        where = (asked.repository, asked.commit)
        for spot, run in list(self._open.items()):
            if (spot.repository, run.commit) == where and run.ask is None:
                await self._begin(spot, run.marker, title)
                await self._api.change_check(spot, run.id, not_run_again(), progress=True)
                return
        begun = {"name": title, "head_sha": asked.commit}
        await self._api.begin_check(asked.repository, begun | not_run_again())

    async def _turn(self, spot: Spot, post: PostSend, name: Name, title: str) -> Name:
        known, state = self._run(spot, post.marker, name), post.content.state
        if state in wording.CHECK_ENDED:
            if known is not None:
                await self._end(spot, known, post)
            return name
        if known is None and state != "queued":
            known = await self._begin(spot, post.marker, title)
        return name if known is None else replace(name, at=f"check-{known.id}")

    def _run(self, spot: Spot, marker: str, name: Name) -> _Run | None:
        """Find the run of a turn: the latest one, else the one that its comment remembers."""
        known = self._open.get(spot)
        if known is not None and known.marker == marker:
            return known
        stored = _RUN.fullmatch(name.at)
        if stored is None:
            return None
        self._open[spot] = _Run(int(stored[1]), marker)
        return self._open[spot]

    async def _end(self, spot: Spot, run: _Run, post: PostSend) -> None:
        """End the runs of a turn that is over, and those that failed to end before."""
        self._open.pop(spot, None)
        shown = ended(post.content)
        self._unended[run.id] = (spot, shown)
        self._unended |= dict.fromkeys(await self._further_runs(spot, run), (spot, shown))
        for each, (where, said) in list(self._unended.items()):
            with suppress(PostRejected):
                await self._api.change_check(where, each, said, progress=False)
            self._unended.pop(each, None)

    async def _further_runs(self, spot: Spot, run: _Run) -> list[int]:
        """List the runs of a turn that were begun before a restart and are not remembered."""
        if run.commit:
            return []
        commit = (await self._api.pull(spot)).head.sha
        mine = f"{spot.number}:{run.marker}"
        found = await self._api.check_runs(spot.repository, commit)
        return [each.id for each in found if each.external_id == mine]

    async def _begin(self, spot: Spot, marker: str, title: str) -> _Run | None:
        until = self._refused.get(spot.repository, 0.0)
        if spot in self._issues or self._clock.monotonic() < until:
            return None
        try:
            commit = (await self._api.pull(spot)).head.sha
        except Gone:
            self._issues.add(spot)
            return None
        begun = {"name": title, "head_sha": commit, "external_id": f"{spot.number}:{marker}"}
        try:
            number = await self._api.begin_check(spot.repository, begun | working(title))
        except PostRejected as error:
            logger.info("cannot create a check on %s: %s", spot, error)
            self._refused[spot.repository] = self._clock.monotonic() + AGAIN_SECONDS
            return None
        self._open[spot] = _Run(number, marker, commit)
        return self._open[spot]

    async def _ask(self, spot: Spot, content: PostContent, title: str) -> None:
        run = self._open.get(spot)
        if run is None:
            return
        if content.state == "open":
            await self._api.change_check(spot, run.id, asking(content), progress=True)
            self._open[spot] = replace(run, ask=content.ask)
        elif content.state == "answered" and run.ask == content.ask:
            await self._begin(spot, run.marker, title)


def working(slug: str) -> dict[str, Any]:
    """Say that an agent is at work, and how to stop it: GitHub shows no buttons here."""
    summary = wording.SEE_OR_STOP.format(slug=slug)
    output = {"title": wording.CHECK_WORKING, "summary": summary}
    return {"status": "in_progress", "output": output}


def asking(content: PostContent) -> dict[str, Any]:
    """Say what an agent asks, with a button for as many answers as fit, and one to stop."""
    numbered = [each for each in enumerate(content.options) if not each[1].on_page]
    usual = sorted(numbered, key=lambda each: each[1].kind not in _FIRST)[:MOST_ACTIONS]
    actions = [_action(content.ask or 0, number, option) for number, option in sorted(usual)]
    more = "" if len(numbered) <= MOST_ACTIONS else f"\n\n{wording.MORE_ANSWERS}"
    summary = f"{markdown(content.asked)}{more}"
    return {
        "status": "completed",
        "conclusion": "neutral",
        "output": {"title": wording.NEEDS_ANSWER, "summary": summary or "?"},
        "actions": [*actions, STOP][:MOST_ACTIONS],
    }


def ended(content: PostContent) -> dict[str, Any]:
    """Say how a turn ended."""
    conclusion = "success" if content.state == "done" else "neutral"
    output = {"title": wording.CHECK_ENDED[content.state], "summary": wording.SEE_CONVERSATION}
    return {"status": "completed", "conclusion": conclusion, "output": output, "actions": []}


def not_run_again() -> dict[str, Any]:
    """Say why a check that people started again does nothing."""
    output = {"title": wording.NOT_RUN_AGAIN, "summary": wording.MENTION_TO_START}
    return {"status": "completed", "conclusion": "neutral", "output": output}


def _action(ask: int, number: int, option: AskOption) -> dict[str, str]:
    name = " ".join(option.name.split()) or option.id
    label, description = wording.GRANTS.get(option.id, (name, wording.ANSWER.format(name=name)))
    return {
        "label": _short(label, LABEL_CHARACTERS),
        "description": _short(description, DESCRIPTION_CHARACTERS),
        "identifier": name_button(ask, number),
    }


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
