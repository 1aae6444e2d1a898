"""Reads how the checks of a pull request ended, with an excerpt of those that failed.

A plain commit status counts as a check: nothing has passed while either of them fails.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from app.errors import PostRejected
from app.model.inbound import News
from app.model.proposals import Checked, Examined, Remark
from app.model.workspaces import Judged
from app.services.github.api import GithubApi
from app.services.github.names import Identities, Spot
from app.services.github.payloads import Annotation, CheckRun, Output, Pull, Review, Status

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

Checks = Literal["", "running", "passed", "failed"]
Verdict = Literal["", "approved", "changes"]

_TIME = re.compile(r"^\ufeff?\d{4}-\d\d-\d\dT[\d:.]+Z ?")
_ODD = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Said:
    """What a failed check says."""

    run: CheckRun
    annotations: Sequence[Annotation] = ()
    log: str = ""


async def read_checks(api: GithubApi, news: News, us: Identities) -> Checked | None:
    """Read how checks ended; None while some run, or if there is no such pull request of ours.

    Raises:
        PostDelayed: not now.
    """
    try:
        pull = await api.find_pull(news.repository, news.branch)
        if pull is None or pull.head.sha != news.mark:
            return None
        found = await api.check_runs(news.repository, news.mark)
        runs = [each for each in found if not us.is_app(each.app)]
        if any(each.status != "completed" for each in runs):
            return None
        ended, awaited = await _read_statuses(api, news)
        runs += ended
        failed = [each for each in runs if each.conclusion not in PASSED]
        # Some statuses wait for people without a limit: a failure does not wait for them.
        if not runs or (awaited and not failed):
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
    pull = await api.find_pull(repository, branch)
    if pull is None:
        return None
    runs, statuses = await _read_all(api, repository, pull, us)
    reviews = await api.reviews(Spot(repository, pull.number))
    return Judged(_checks_of(runs, statuses), _review_of(reviews))


async def examine(api: GithubApi, repository: str, branch: str, us: Identities) -> Examined | None:
    """Read what every check and reviewer says about the open pull request of a branch.

    Raises:
        PostError: GitHub does not say.
    """
    pull = await api.find_pull(repository, branch)
    if pull is None:
        return None
    runs, statuses = await _read_all(api, repository, pull, us)
    reviews = await api.reviews(Spot(repository, pull.number))
    ended = [each for each in runs if each.status == "completed"]
    ended += [_as_check(each) for each in statuses if each.state != "pending"]
    failed = [each for each in ended if each.conclusion not in PASSED]
    said = [await _read_details(api, repository, run) for run in failed[:EXPLAINED]]
    waiting = [each.name for each in runs if each.status != "completed"]
    waiting += [each.context for each in statuses if each.state == "pending"]
    return Examined(
        pull.head.sha,
        pull.html_url,
        Judged(_checks_of(runs, statuses), _review_of(reviews)),
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
    api: GithubApi, repository: str, pull: Pull, us: Identities
) -> tuple[list[CheckRun], list[Status]]:
    """Read the checks and statuses of a pull request; none where that is not allowed."""
    runs: list[CheckRun] = []
    statuses: list[Status] = []
    try:
        found = await api.check_runs(repository, pull.head.sha)
        runs = [each for each in found if not us.is_app(each.app)]
        statuses = await api.statuses(repository, pull.head.sha)
    except PostRejected as error:
        logger.info("cannot read the checks of %s: %s", pull.html_url, error)
    return runs, statuses


def _checks_of(runs: Sequence[CheckRun], statuses: Sequence[Status]) -> Checks:
    ended = [each for each in runs if each.status == "completed"]
    ended += [_as_check(each) for each in statuses if each.state != "pending"]
    if any(each.conclusion not in PASSED for each in ended):
        return "failed"
    if len(ended) < len(runs) + len(statuses):
        return "running"
    return "passed" if ended else ""


def _review_of(reviews: Iterable[Review]) -> Verdict:
    """Return what reviewers say: the last verdict of each counts, and a request above all."""
    last = {
        each.user.id: each.state.lower()
        for each in reviews
        if each.user is not None and each.state.lower() in VERDICTS
    }
    if "changes_requested" in last.values():
        return "changes"
    return "approved" if "approved" in last.values() else ""


def excerpt(said: Iterable[Said]) -> str:
    """Write what failed checks say: title, annotations, summary, and the end of the log."""
    return "\n\n".join(map(_explain, said))


def end_of_log(log: str) -> str:
    """Cut out of a job's log the lines before its last error, else its last lines."""
    lines = [_TIME.sub("", _ODD.sub("", line)).rstrip() for line in log.splitlines()]
    errors = [number for number, line in enumerate(lines, 1) if line.startswith(ERROR)]
    end = errors[-1] if errors else len(lines)
    text = "\n".join(filter(None, lines[max(0, end - LOG_LINES) : end]))
    return text if len(text) <= LOG_CHARACTERS else f"…{text[1 - LOG_CHARACTERS :]}"


async def _read_statuses(api: GithubApi, news: News) -> tuple[list[CheckRun], bool]:
    """Read statuses as checks that ended; tells whether there are others, which wait."""
    try:
        found = await api.statuses(news.repository, news.mark)
    except PostRejected as error:
        logger.info("cannot read the statuses of %s: %s", news.branch, error)
        return [], False
    ended = [_as_check(each) for each in found if each.state != "pending"]
    return ended, len(ended) < len(found)


def _as_check(status: Status) -> CheckRun:
    words = "\n".join(filter(None, (status.description, status.target_url)))
    shown = Output(summary=words)
    return CheckRun(id=0, name=status.context, conclusion=status.state, output=shown)


async def _read_details(api: GithubApi, repository: str, run: CheckRun) -> Said:
    annotations: Sequence[Annotation] = ()
    if run.output.annotations_count:
        annotations = await api.annotations(repository, run.id)
    if run.app != WORKFLOWS:
        return Said(run, annotations)
    try:
        # A job of a workflow has the number of its check.
        return Said(run, annotations, await api.end_of_log(repository, run.id))
    except PostRejected as error:
        logger.info("cannot read the log of %s: %s", run.name, error)
        return Said(run, annotations)


def _explain(said: Said) -> str:
    run = said.run
    lines = [
        f"{_line(each.path)}:{each.start_line or 1}: {_line(each.message or '')}"
        for each in said.annotations[:ANNOTATIONS]
    ]
    head = ": ".join(filter(None, (_line(run.name), _line(run.output.title or ""))))
    parts = (f"{head} ({run.conclusion})", *lines, run.output.summary, run.output.text)
    text = _ODD.sub("", "\n".join(filter(None, parts))).strip()
    short = text if len(text) <= RUN_CHARACTERS else f"{text[: RUN_CHARACTERS - 1]}…"
    return "\n".join(filter(None, (short, end_of_log(said.log))))


def _line(text: str) -> str:
    return " ".join(_ODD.sub(" ", text).split())
