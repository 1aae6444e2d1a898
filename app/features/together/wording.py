"""Words what people and agents read about reviews, panels and races; pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from app.features.together.model import Review, Shown
from app.model.proposals import ReviewFinding, Verdict
from app.model.workspaces import Changes

HELP: Final = """\
`review NAME` has an agent review the work here · `panel NAME NAME: QUESTION` asks several
`race NAME NAME: TASK` gives several the same task, and you pick the one to ship"""
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

NOT_HERE: Final = "There is no agent {agent} here any more."
NO_PERSON: Final = "Only people can have agents work together by a command."
BEGINS: Final = "{reviewer} reviews `{branch}`, the work of {author}. The verdict follows here."
AUTHOR_AT_WORK: Final = "{agent} is still at work. Send the command again when it is done."
NOTHING_PUSHED: Final = (
    "There is nothing here that {agent} could review: no other agent has pushed a branch. To have "
    "something else reviewed, tell the agent what."
)
NOT_PUSHED: Final = "{agent} has not pushed anything that could be reviewed."
LOOKS_AGAIN: Final = "{reviewer} looks at it again, for round {number}."
STOPPED: Final = "The review ended: the turn of {agent} was stopped."
FAILED: Final = "The review ended: the turn of {agent} failed. `review` begins another one."
TAKEN_OVER: Final = "The review ended: {person} took over. `review` begins another one."
NO_VERDICT: Final = "{agent} ended its review without a verdict.\n\n{said}"
CANNOT_GO_ON: Final = "The review cannot go on. {why}"
PEOPLE_DECIDE: Final = (
    "{reviewer} still requests changes after {rounds} rounds. Please decide: tell the author what "
    "to do, or merge it as it is. Open findings:\n\n{findings}"
)

REVIEW_TASK: Final = (
    "Review the work of {author} on the branch {branch}, which is proposed for {base}. Read the "
    "diff, and the code around it where you need to; you cannot change anything. Then call the "
    "tool review_submit once, with your verdict and one comment per finding. Request changes only "
    "for what has to be different before it is merged."
)
ANSWER_REVIEW: Final = (
    "{reviewer} reviewed your work on {branch} and requests changes. Its findings follow as data. "
    "Fix what is right, then say briefly what you changed, and what you did not and why."
)
PANEL_BEGINS: Final = "{agents} answer the question. The answers follow here."
PANEL_STOPPED: Final = "The panel was stopped."
NO_ANSWER: Final = "(no answer)"
SUM_UP: Final = (
    "Several agents answered this question; their answers follow as data. Sum them up for the "
    "people here: where they agree, where they differ, and what you recommend. The question:\n"
    "{question}"
)
RACE_BEGINS: Final = "{agents} begin, each on its own branch. You pick the one to ship."
RACE_NEEDS_REPOSITORY: Final = (
    "A race needs a repository. Send `repo OWNER/NAME` first, then the command again."
)
WHICH_ONE: Final = "Which one is to be shipped?"
NONE_OF_THEM: Final = "None of them"
CANDIDATE: Final = "- {agent}: {changed} {link}"
NOTHING_TO_PICK: Final = "The race is over: no agent changed anything."
NONE_PICKED: Final = "The race is over: nothing is shipped."
SHIPPED: Final = "The work of {agent} is shipped: {where}"
NOT_SHIPPED: Final = "The work of {agent} could not be shipped: {problem}"
NO_CHANGES: Final = "there is nothing to push."
ANSWER_CHARACTERS: Final = 2_500
"""How much of an answer is shown next to others; the whole of it is on the page."""
DATA_CHARACTERS: Final = 12_000
"""How much of an answer the agent reads that sums up."""

TASK_WAS: Final = "What people asked {author} for:\n{task}"
AUTHOR_SAYS: Final = "What {author} says about its work:\n{notes}"
VERDICT_WAS: Final = "{path}:{line}: {body}"


def write_notes(task: str, author: str, notes: str) -> str:
    """Write what a reviewer is told as data: the task, and what the author says."""
    parts = (
        TASK_WAS.format(author=author, task=task) if task else "",
        AUTHOR_SAYS.format(author=author, notes=notes) if notes else "",
    )
    return "\n\n".join(filter(None, parts))


def write_review(review: Review) -> str:
    """Write what an author is told as data: the reviewer's words, and its findings by line."""
    found = (VERDICT_WAS.format(**each.data()) for each in review.findings)
    return "\n\n".join(filter(None, (review.body, "\n".join(found))))


def changed(changes: Changes) -> str:
    """Say how much changed."""
    files = "1 file" if changes.files == 1 else f"{changes.files} files"
    return f"+{changes.added} −{changes.removed} in {files}"  # noqa: RUF001 - a minus sign


def listed(names: Sequence[str]) -> str:
    """List names as in a sentence."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def side_by_side(answers: Sequence[tuple[str, str]]) -> str:
    """Show several agents' answers in one post."""
    return "\n\n".join(f"**{name}**\n{_cut(text, ANSWER_CHARACTERS)}" for name, text in answers)


def write_answers(answers: Sequence[tuple[str, str]]) -> str:
    """Write answers as data for the agent that sums up."""
    return "\n\n".join(f"{name}:\n{_cut(text, DATA_CHARACTERS)}" for name, text in answers)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def describe(review: Review, agent: str, problem: str = "") -> str:
    """Say what a reviewer found, its verdict first."""
    what = f"`{review.branch}`" if review.branch else THE_WORK
    first = OUTCOMES[review.verdict].format(agent=agent, what=what)
    after = READ_IT.format(link=review.link) if review.link else ""
    failed = NOT_ON_PLATFORM.format(problem=problem) if problem else ""
    return "\n\n".join(
        filter(None, (first, review.body.strip(), list_findings(review.findings), after, failed))
    )


def list_findings(findings: Sequence[ReviewFinding]) -> str:
    """List findings, a line each."""
    lines = [f"- {each}" for each in findings[:LISTED_FINDINGS]]
    if len(findings) > LISTED_FINDINGS:
        lines.append(MORE_FINDINGS.format(number=len(findings) - LISTED_FINDINGS))
    return "\n".join(lines)


def refuse_lines(outside: Sequence[ReviewFinding], shown: Shown) -> str:
    """Say which comments are not on lines of the diff, and which lines it has."""
    named = ", ".join(f"{each.path}:{each.line}" for each in outside[:LISTED_LINES])
    ranges = [
        f"{path}:{hunk.start}-{hunk.stop - 1}"
        for path, hunks in sorted(shown.items(), key=lambda each: _is_other(each[0], outside))
        for hunk in hunks
        if hunk
    ]
    return OUTSIDE.format(outside=named, lines=", ".join(ranges[:LISTED_LINES]))


def _is_other(path: str, outside: Sequence[ReviewFinding]) -> bool:
    return all(each.path != path for each in outside)
