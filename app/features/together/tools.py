"""Gives agents the tools for reviews: give a verdict, or have their own work reviewed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from app.features.together import wording
from app.features.together.review import Reviews
from app.features.together.service import Together
from app.model.agents import Arguments, Caller, Result, Tool
from app.model.proposals import VERDICTS, ReviewFinding

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
