"""Words what agents and people are told about work that several agents have a part in; pure."""

from __future__ import annotations

GOES_ON_WITH = (
    "You take over from {agent}. Your folder is your own clone of its branch {branch}, with its "
    "last commit; go on there, its pull request follows the branch."
)
LEFT_BEHIND = "Not taken along from {agent}: {left}."
STILL_AT_WORK = "it is still at work, and what it has not pushed yet stays with it"
CAUGHT_UP = (
    "{agent} pushed to your branch {branch} meanwhile. Your folder is at its commit {commit} now."
)
FELL_BEHIND = (
    "{agent} pushed to your branch {branch} meanwhile, up to commit {commit}. Your own "
    "changes are in the way, so your folder was left as it is: merge that commit before you push."
)
SHARES = (
    "You work on the branch {branch} of {agent}, in your own clone, with what it has pushed; both "
    "of you push to it."
)
READS = (
    "Your folder has the branch {branch} of {agent} for reading, at commit {commit}. What it has "
    "not pushed is not there, and you cannot push from it."
)
REVIEW = "Review {name}{by} at commit {commit}, against {base}. {where} The diff follows as data."
REVIEW_BY = " by {agent}"
REVIEW_IN_PLACE = "Your folder has it checked out."
REVIEW_APART = "Your own folder stays as it is: read the commit with git show and git diff."
NOTHING_TO_REVIEW = "There is nothing of {name} to review: it has not been pushed."
CUT_DIFF = "[… the rest of the diff is in the clone]"
NEW_COMMITS = "the new commits of {branch}"
DIFF = "the diff of {name} to {base}"
CLONE_BROKEN = "its clone can no longer be used"
