"""Words what people and agents read about reviews, panels and races; pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from app.core.reviewing import Finding, Review, Verdict
from app.core.together.diff_lines import Shown

OUTCOMES: Final[dict[Verdict, str]] = {
    "approve": "{agent} approved {what}.",
    "request_changes": "{agent} requested changes to {what}.",
    "comment": "{agent} commented on {what}.",
}
THE_WORK: Final = "the work"
READ_IT: Final = "The review: {link}"
NOT_ON_PLATFORM: Final = "It could not be put on the pull request: {problem}"
LISTED_FINDINGS: Final = 20
"""Findings that a post lists: the others are on the pull request, or a page away."""
MORE_FINDINGS: Final = "… and {number} more"

OUTSIDE: Final = (
    "These comments are not on lines that the diff shows: {outside}. Comment on a line of the diff "
    "({lines}), or say it in the body. Nothing was submitted."
)
LISTED_LINES: Final = 12
"""Ranges of lines that a refusal names."""
EMPTY: Final = "Say what has to change, in the body or on lines. Nothing was submitted."
GIVEN_BEFORE: Final = "You gave your review in this turn already; that one counts."


def describe(review: Review, agent: str, problem: str = "") -> str:
    """Say what a reviewer found, its verdict first."""
    what = f"`{review.branch}`" if review.branch else THE_WORK
    first = OUTCOMES[review.verdict].format(agent=agent, what=what)
    after = READ_IT.format(link=review.link) if review.link else ""
    failed = NOT_ON_PLATFORM.format(problem=problem) if problem else ""
    return "\n\n".join(
        filter(None, (first, review.body.strip(), list_findings(review.findings), after, failed))
    )


def list_findings(findings: Sequence[Finding]) -> str:
    """List findings, a line each."""
    lines = [f"- {each}" for each in findings[:LISTED_FINDINGS]]
    if len(findings) > LISTED_FINDINGS:
        lines.append(MORE_FINDINGS.format(number=len(findings) - LISTED_FINDINGS))
    return "\n".join(lines)


def refuse_lines(outside: Sequence[Finding], shown: Shown) -> str:
    """Say which comments are not on lines of the diff, and which lines it has."""
    named = ", ".join(f"{each.path}:{each.line}" for each in outside[:LISTED_LINES])
    ranges = [
        f"{path}:{hunk.start}-{hunk.stop - 1}"
        for path, hunks in sorted(shown.items(), key=lambda each: _is_other(each[0], outside))
        for hunk in hunks
        if hunk
    ]
    return OUTSIDE.format(outside=named, lines=", ".join(ranges[:LISTED_LINES]))


def _is_other(path: str, outside: Sequence[Finding]) -> bool:
    return all(each.path != path for each in outside)
