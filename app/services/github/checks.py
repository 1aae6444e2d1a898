"""Looks how the checks of a pull request ended, and what those say that failed, in short."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence

from app.core.types import News
from app.core.workspaces import Checked
from app.errors import PostRejected
from app.services.github.api import GithubApi
from app.services.github.mentions import Identities
from app.services.github.payloads import Annotation, CheckRun

logger = logging.getLogger(__name__)

PASSED = {"success", "neutral", "skipped"}
"""How GitHub lets a check end that keeps nobody from merging."""
EXPLAINED = 3
"""Checks that an excerpt is about; the others are named."""
RUN_CHARACTERS = 800
"""What an excerpt takes of one check: three of them stay readable in a thread."""
ANNOTATIONS = 10

_ODD = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")


async def read_checks(api: GithubApi, news: News, us: Identities) -> Checked | None:
    """Look how checks ended; None while some run, or if there is no such pull request of ours.

    Raises:
        PostDelayed: not now.
    """
    try:
        pull = await api.find_pull(news.repository, news.branch)
        if pull is None or pull.head.sha != news.mark:
            return None
        found = await api.check_runs(news.repository, news.mark)
        runs = [each for each in found if each.app is None or not us.is_app(each.app.slug)]
        if not runs or any(each.status != "completed" for each in runs):
            return None
        failed = [each for each in runs if each.conclusion not in PASSED]
        said = [(run, await _annotations(api, news, run)) for run in failed[:EXPLAINED]]
    except PostRejected as error:
        logger.warning("the checks of %s cannot be read: %s", news.branch, error)
        return None
    names = tuple(dict.fromkeys(_line(each.name) for each in failed))
    return Checked(news.mark, pull.html_url, names, excerpt(said))


def excerpt(said: Iterable[tuple[CheckRun, Sequence[Annotation]]]) -> str:
    """Write what failed checks say: each with its title, its summary and its lines."""
    return "\n\n".join(_explained(run, annotations) for run, annotations in said)


async def _annotations(api: GithubApi, news: News, run: CheckRun) -> list[Annotation]:
    if not run.output.annotations_count:
        return []
    return await api.annotations(news.repository, run.id)


def _explained(run: CheckRun, annotations: Sequence[Annotation]) -> str:
    lines = [
        f"{_line(each.path)}:{each.start_line or 1}: {_line(each.message or '')}"
        for each in annotations[:ANNOTATIONS]
    ]
    head = ": ".join(filter(None, (_line(run.name), _line(run.output.title or ""))))
    parts = (f"{head} ({run.conclusion})", *lines, run.output.summary, run.output.text)
    text = _ODD.sub("", "\n".join(filter(None, parts))).strip()
    return text if len(text) <= RUN_CHARACTERS else f"{text[: RUN_CHARACTERS - 1]}…"


def _line(text: str) -> str:
    return " ".join(_ODD.sub(" ", text).split())
