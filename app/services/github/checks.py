"""Reads how the checks of a pull request ended, and shows a turn there as a check with buttons.

A plain commit status counts as a check: nothing has passed while either of them fails.

Nothing depends on our own checks, and none ever fails: how a turn ended says nothing about the
commit. GitHub shows buttons only on completed runs, which never work again. So a question completes
the run, and its answer begins another one of the same name, which GitHub shows instead.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

import httpx
from gidgethub import GitHubException

from app.clock import Clock
from app.errors import PostError, PostRejected
from app.model.ask_wording import markdown
from app.model.inbound import News
from app.model.posts import PostContent, PostSend
from app.model.proposals import Checked, Examined, Remark
from app.model.workspaces import Judged
from app.services.github import wording
from app.services.github.api import GithubApi
from app.services.github.events import STOP, Rerun, name_button
from app.services.github.names import Identities, Name, Spot
from app.services.github.payloads import (
    Annotation,
    CheckOutput,
    CheckRun,
    CommitStatus,
    GitHubReview,
    Pull,
)
from app.services.github.render import cut
from app.services.github.transport import Gone

logger = logging.getLogger(__name__)

PASSED = {"success", "neutral", "skipped"}
"""The conclusions of a check that do not block a merge."""
EXPLAINED = 3
"""Checks that an excerpt is about; the others are named."""
RUN_CHARACTERS = 800
"""The longest excerpt of one check: three of them stay readable in a thread."""
LOG_LINES = 20
LOG_CHARACTERS = 1_000
"""The longest excerpt of the end of a log."""
ANNOTATIONS = 10
REMARKS = 10
"""Reviews that an examination quotes, the last ones."""
VERDICTS = {"approved", "changes_requested", "dismissed"}
"""The states of reviews that replace an earlier one of the same reviewer."""
WORKFLOWS = "github-actions"
"""The App whose checks are jobs with a log."""
ERROR = "##[error]"
"""Marks the error that ended a job in its log; what follows is cleanup."""

_TIME = re.compile(r"^\ufeff?\d{4}-\d\d-\d\dT[\d:.]+Z ?")
_ODD = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What a failed check says."""

    run: CheckRun
    annotations: Sequence[Annotation] = ()
    log: str = ""


async def read_checks(api: GithubApi, news: News, us: Identities) -> Checked | None:
    """Read how checks ended; None while some run, or if there is no such pull request of ours.

    Raises:
        PostDelayed: not now.
    """
    statuses: list[CommitStatus] = []
    try:
        pull = await api.find_pull(news.repository, news.branch)
        if pull is None or pull.head.sha != news.mark:
            return None
        found = await api.check_runs(news.repository, news.mark)
        runs = [each for each in found if not us.is_app(each.app)]
        if any(each.status != "completed" for each in runs):
            return None
        try:
            statuses = await api.statuses(news.repository, news.mark)
        except PostRejected as error:
            logger.info("cannot read the statuses of %s: %s", news.branch, error)
        ended, failed = _ended(runs, statuses)
        # Some statuses wait for people without a limit: a failure does not wait for them.
        if not ended or (len(ended) < len(runs) + len(statuses) and not failed):
            return None
        said = [await _read_details(api, news.repository, run) for run in failed[:EXPLAINED]]
    except PostRejected as error:
        logger.warning("cannot read the checks of %s: %s", news.branch, error)
        return None
    names = tuple(dict.fromkeys(_line(each.name) for each in failed))
    return Checked(news.mark, pull.html_url, names, excerpt(said))


async def read_judgement(
    api: GithubApi, repository: str, branch: str, us: Identities
) -> Judged | None:
    """Read the checks and the review of the open pull request of a branch; None without one.

    Raises:
        PostError: GitHub does not say.
    """
    found = await _read_all(api, repository, branch, us)
    return _judge(*found[1:]) if found is not None else None


async def examine(api: GithubApi, repository: str, branch: str, us: Identities) -> Examined | None:
    """Read what every check and reviewer says about the open pull request of a branch.

    Raises:
        PostError: GitHub does not say.
    """
    found = await _read_all(api, repository, branch, us)
    if found is None:
        return None
    pull, runs, statuses, reviews = found
    _, failed = _ended(runs, statuses)
    said = [await _read_details(api, repository, run) for run in failed[:EXPLAINED]]
    waiting = [each.name for each in runs if each.status != "completed"]
    waiting += [each.context for each in statuses if each.state == "pending"]
    return Examined(
        pull.head.sha,
        pull.html_url,
        _judge(runs, statuses, reviews),
        failed=tuple(dict.fromkeys(_line(each.name) for each in failed)),
        running=tuple(dict.fromkeys(map(_line, waiting))),
        excerpt=excerpt(said),
        remarks=tuple(
            Remark(each.user.login, each.state.lower(), each.body or "")
            for each in reviews[-REMARKS:]
            if each.user is not None
        ),
    )


async def _read_all(
    api: GithubApi, repository: str, branch: str, us: Identities
) -> tuple[Pull, list[CheckRun], list[CommitStatus], list[GitHubReview]] | None:
    """Read checks, statuses and reviews of a branch's open pull request; those it may read."""
    pull = await api.find_pull(repository, branch)
    if pull is None:
        return None
    runs: list[CheckRun] = []
    statuses: list[CommitStatus] = []
    try:
        found = await api.check_runs(repository, pull.head.sha)
        runs = [each for each in found if not us.is_app(each.app)]
        statuses = await api.statuses(repository, pull.head.sha)
    except PostRejected as error:
        logger.info("cannot read the checks of %s: %s", pull.html_url, error)
    return pull, runs, statuses, await api.reviews(Spot(repository, pull.number))


def _ended(
    runs: Iterable[CheckRun], statuses: Iterable[CommitStatus]
) -> tuple[list[CheckRun], list[CheckRun]]:
    """List the checks and statuses that ended, as checks, and those of them that failed."""
    ended = [each for each in runs if each.status == "completed"]
    for each in statuses:
        if each.state != "pending":
            words = "\n".join(filter(None, (each.description, each.target_url)))
            shown = CheckOutput(summary=words)
            ended.append(CheckRun(id=0, name=each.context, conclusion=each.state, output=shown))
    return ended, [each for each in ended if each.conclusion not in PASSED]


def _judge(
    runs: Sequence[CheckRun], statuses: Sequence[CommitStatus], reviews: Iterable[GitHubReview]
) -> Judged:
    """Sum up checks and reviews: of a reviewer the last verdict counts, and a request above all."""
    ended, failed = _ended(runs, statuses)
    checks: Literal["", "running", "passed", "failed"] = "passed" if ended else ""
    if failed or len(ended) < len(runs) + len(statuses):
        checks = "failed" if failed else "running"
    last = {
        each.user.id: each.state.lower()
        for each in reviews
        if each.user is not None and each.state.lower() in VERDICTS
    }
    if "changes_requested" in last.values():
        return Judged(checks, "changes")
    return Judged(checks, "approved" if "approved" in last.values() else "")


def end_of_log(log: str) -> str:
    """Cut out of a job's log the lines before its last error, else its last lines."""
    lines = [_TIME.sub("", _ODD.sub("", line)).rstrip() for line in log.splitlines()]
    errors = [number for number, line in enumerate(lines, 1) if line.startswith(ERROR)]
    end = errors[-1] if errors else len(lines)
    text = "\n".join(filter(None, lines[max(0, end - LOG_LINES) : end]))
    return text if len(text) <= LOG_CHARACTERS else f"…{text[1 - LOG_CHARACTERS :]}"


async def _read_details(api: GithubApi, repository: str, run: CheckRun) -> CheckReport:
    counted, log = run.output.annotations_count, ""
    annotations = await api.annotations(repository, run.id) if counted else ()
    try:
        # A job of a workflow has the number of its check.
        log = await api.end_of_log(repository, run.id) if run.app == WORKFLOWS else ""
    except PostRejected as error:
        logger.info("cannot read the log of %s: %s", run.name, error)
    return CheckReport(run, annotations, log)


def excerpt(failed: Iterable[CheckReport]) -> str:
    """Write what failed checks say: title, annotations, summary, and the end of the log."""
    shown: list[str] = []
    for said in failed:
        run = said.run
        lines = [
            f"{_line(each.path)}:{each.start_line or 1}: {_line(each.message or '')}"
            for each in said.annotations[:ANNOTATIONS]
        ]
        head = ": ".join(filter(None, (_line(run.name), _line(run.output.title or ""))))
        parts = (f"{head} ({run.conclusion})", *lines, run.output.summary, run.output.text)
        text = _ODD.sub("", "\n".join(filter(None, parts))).strip()
        parts = (cut(text, RUN_CHARACTERS), end_of_log(said.log))
        shown.append("\n".join(filter(None, parts)))
    return "\n\n".join(shown)


def _line(text: str) -> str:
    return " ".join(_ODD.sub(" ", text).split())


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
        nothing = _complete(wording.NOT_RUN_AGAIN, wording.MENTION_TO_START)
        for spot, run in list(self._open.items()):
            if (spot.repository, run.commit) == where and run.ask is None:
                await self._begin(spot, run.marker, title)
                await self._api.change_check(spot, run.id, nothing, progress=True)
                return
        begun = {"name": title, "head_sha": asked.commit, **nothing}
        await self._api.begin_check(asked.repository, begun)

    async def _turn(self, spot: Spot, post: PostSend, name: Name, title: str) -> Name:
        known, state = self._find(spot, post.marker, name), post.content.state
        if state in wording.CHECK_ENDED:
            if known is not None:
                await self._end(spot, known, post)
            return name
        if known is None and state != "queued":
            known = await self._begin(spot, post.marker, title)
        return name if known is None else replace(name, at=f"check-{known.id}")

    def _find(self, spot: Spot, marker: str, name: Name) -> _Run | None:
        """Find the run of a turn: the latest one, else the one that its comment remembers."""
        known = self._open.get(spot)
        if known is not None and known.marker == marker:
            return known
        if stored := _RUN.fullmatch(name.at):
            self._open[spot] = _Run(int(stored[1]), marker)
        return self._open[spot] if stored else None

    async def _end(self, spot: Spot, run: _Run, post: PostSend) -> None:
        """End the runs of a turn that is over, and those that failed to end before."""
        self._open.pop(spot, None)
        shown = ended(post.content)
        self._unended[run.id] = (spot, shown)
        if not run.commit:  # some may have been begun before a restart
            commit = (await self._api.pull(spot)).head.sha
            for each in await self._api.check_runs(spot.repository, commit):
                if each.external_id == f"{spot.number}:{run.marker}":
                    self._unended[each.id] = (spot, shown)
        for number, (where, said) in list(self._unended.items()):
            with suppress(PostRejected):
                await self._api.change_check(where, number, said, progress=False)
            self._unended.pop(number, None)

    async def _begin(self, spot: Spot, marker: str, title: str) -> _Run | None:
        until = self._refused.get(spot.repository, 0.0)
        if spot in self._issues or self._clock.monotonic() < until:
            return None
        try:
            commit = (await self._api.pull(spot)).head.sha
        except Gone:
            self._issues.add(spot)
            return None
        # It says how to stop the agent: GitHub shows no buttons before the end.
        how = wording.SEE_OR_STOP.format(slug=title)
        begun = {
            "name": title,
            "head_sha": commit,
            "external_id": f"{spot.number}:{marker}",
            "status": "in_progress",
            "output": {"title": wording.CHECK_WORKING, "summary": how},
        }
        try:
            number = await self._api.begin_check(spot.repository, begun)
        except PostRejected as error:
            logger.info("cannot create a check on %s: %s", spot, error)
            self._refused[spot.repository] = self._clock.monotonic() + AGAIN_SECONDS
            return None
        self._open[spot] = _Run(number, marker, commit)
        return self._open[spot]

    async def _ask(self, spot: Spot, content: PostContent, title: str) -> None:
        if (run := self._open.get(spot)) is None:
            return
        if content.state == "open":
            await self._api.change_check(spot, run.id, asking(content), progress=True)
            self._open[spot] = replace(run, ask=content.ask)
        elif content.state == "answered" and run.ask == content.ask:
            await self._begin(spot, run.marker, title)


def asking(content: PostContent) -> dict[str, Any]:
    """Say what an agent asks, with a button for as many answers as fit, and one to stop."""
    numbered = [each for each in enumerate(content.options) if not each[1].on_page]
    usual = sorted(numbered, key=lambda each: each[1].kind not in _FIRST)[:MOST_ACTIONS]
    actions = []
    for number, option in sorted(usual):
        name = " ".join(option.name.split()) or option.id
        label, words = wording.GRANTS.get(option.id, (name, wording.ANSWER.format(name=name)))
        action = {"label": cut(label, LABEL_CHARACTERS)}
        action["description"] = cut(words, DESCRIPTION_CHARACTERS)
        actions.append({**action, "identifier": name_button(content.ask or 0, number)})
    more = "" if len(numbered) <= MOST_ACTIONS else f"\n\n{wording.MORE_ANSWERS}"
    summary = f"{markdown(content.asked)}{more}"
    shown = _complete(wording.NEEDS_ANSWER, summary or "?")
    return {**shown, "actions": [*actions, STOP][:MOST_ACTIONS]}


def ended(content: PostContent) -> dict[str, Any]:
    """Say how a turn ended."""
    conclusion = "success" if content.state == "done" else "neutral"
    title = wording.CHECK_ENDED[content.state]
    return {**_complete(title, wording.SEE_CONVERSATION, conclusion), "actions": []}


def _complete(title: str, summary: str, conclusion: str = "neutral") -> dict[str, Any]:
    output = {"title": title, "summary": summary}
    return {"status": "completed", "conclusion": conclusion, "output": output}
