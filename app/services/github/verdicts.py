"""Submits the reviews of agents to pull requests, each once, under the reviewer's own App.

Nothing that a reviewer wrote is lost: what GitHub takes no comment for goes into the review's text,
and so does a verdict on the App's own pull request, which GitHub refuses.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final, Literal

from app.errors import PostRejected
from app.model.reviews import Submission, Verdict
from app.services.github import render, wording
from app.services.github.api import GithubApi
from app.services.github.names import Identities, Spot
from app.services.github.payloads import Review
from app.services.github.reviews import Remark, sort_remarks

logger = logging.getLogger(__name__)

Event = Literal["APPROVE", "REQUEST_CHANGES", "COMMENT"]
EVENTS: Final[dict[Verdict, Event]] = {
    "approve": "APPROVE",
    "request_changes": "REQUEST_CHANGES",
    "comment": "COMMENT",
}


async def submit(api: GithubApi, submission: Submission, us: Identities) -> str | None:
    """Submit a review of the open pull request of a branch; returns its link, None without one."""
    name = submission.repository.name
    pull = await api.find_pull(name, submission.branch)
    if pull is None:
        return None
    spot = Spot(name, pull.number)
    for each in reversed(await api.reviews(spot)):
        ours = us.agent(each.user) == submission.agent
        if ours and render.signature(submission.mark) in (each.body or ""):
            return each.html_url
    is_own = us.agent(pull.user) == submission.agent
    return (await _write(api, spot, submission, is_own=is_own)).html_url


async def _write(api: GithubApi, spot: Spot, submission: Submission, *, is_own: bool) -> Review:
    event: Event = "COMMENT" if is_own else EVENTS[submission.verdict]
    verdict = wording.OWN_VERDICTS[submission.verdict] if is_own else ""
    found = [Remark(each.path, each.line, each.line, each.body) for each in submission.findings]
    fitting, others = sort_remarks(found, await api.patches(spot))
    remarks = [render.quieted(each) for each in fitting]
    try:
        body = _body(verdict, submission, others)
        return await api.add_review(spot, body, remarks, submission.commit, event)
    except PostRejected as error:
        # The branch may have been rewritten since: its review is still owed.
        logger.info("GitHub takes no comments on lines of %s: %s", spot, error)
    return await api.add_review(spot, _body(verdict, submission, found), (), "", event)


def _body(verdict: str, submission: Submission, remarks: Sequence[Remark]) -> str:
    text = render.join(verdict, submission.body, "\n".join(map(str, remarks)))
    return render.add_marker(render.quiet(text or wording.NO_WORDS), submission.mark)
