"""Words commits, pull requests, and what people and agents are told about repositories; pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from app.model.keys import SessionKey
from app.model.proposals import Work
from app.model.types import Speaker

NAMED = 5
"""Files or checks that a sentence names: enough to recognise what is meant."""
NOT_SHIPPED = "Not pushed: {problem}. The work is kept in the workspace."
NOT_PUSHED = "Not pushed: {problem}"
NOT_PROPOSED = "The pull request could not be opened: {problem}"
NO_CLONE = "You do not work in a clone of a repository here: there is nothing to propose."
NO_TURN = "Pushes work only during your turn. Push again when you have been asked to go on."
ONLY_READING = "Your clone is for reading: there is no branch that you can push to."
SHIPS_NOTHING = "The operator has set that your work stays in your workspace (`ship: none`)."
PROPOSAL_OVER = "Your pull request was {outcome}. New commits open another one."
CONFLICT = "It conflicts with `{base}` in {files}. To resolve this, ask for a merge of `{base}`."
CLONE_KEPT = "The clone of {session} is kept because it holds {held}."
CLONE_UNUSABLE = (
    "The old clone can no longer be used and is kept as it is. A new one is made. {problem}"
)
CLONE_LOST = (
    "The clone is not on this machine. A new one is made; work that was not pushed is missing in "
    "it."
)
CLONE_PURGED = (
    "The clone of {name} was deleted, because it held a text that was purged. The next message "
    "makes a new one."
)
FOLDER_LOST = (
    "The folder of this conversation is not on this machine. A new one is made; what was in it is "
    "missing."
)
BRANCH_GUARDED = (
    "Nothing is pushed to `{branch}` of {repository} because {reason}. Changes go to a new branch "
    "and are proposed from there."
)
NEW_REPOSITORIES = (
    "New or changed git repositories in the folder: {names}. They decide which programs your git "
    "runs inside them: look at their `config` and `hooks` before you use git there."
)
ALLOW_ONCE = "Allow once"
REJECT = "Reject"
MERGED = "Merged: {link}"
CLOSED = "Closed without being merged: {link}"
CHECKS_PASSED = "Checks passed: {link}"
CHECKS_FAILED = "Checks failed on {link}: {names}."
CONFLICTS_NOW = "{link} conflicts with `{base}` in {files}."
NO_MORE_FIXES = "Three fixes did not help. Say in your own words what to do."
IN_EMPTY_FOLDER = "none, an empty folder for each agent"
IN_CLONE = "{name}, a clone for each agent"
IN_FOLDER = "the folder {folder}, one agent at a time"
FOLDER_OF_BRIDGE = "The bridge keeps its own files there; choose another folder."
FOLDER_OF_HOME = "That folder holds a whole HOME; choose one inside it."
FOLDER_OF_SYSTEM = "That folder belongs to the system; choose one that holds a project."
NOT_LISTED = "GitHub did not list the repositories. Type OWNER/NAME, or try again later."
FIX_CHECKS = "Fix the checks"
RESOLVE_CONFLICT = "Resolve the conflict"
NO_TITLE = "Changes by {agent}"
PROPOSED = "{people} asked {agent} for this: {where}"
SOMEONE = "Someone"

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
WORKS_ON = "You work on the branch {branch}, in your own clone, and push to it."
STARTS_FROM = "Your branch starts from {branch}."
READS_BRANCH = (
    "Your folder has the branch {branch} for reading, at commit {commit}; you cannot push from it."
)
NO_REPOSITORY = "You do not work in a clone of a repository here: there are no branches."
NO_BRANCH = "There is no branch {branch!r} in {name}."
NO_FOLDER = (
    "There is no folder {folder!r} below the repository or folder that you work in. Name one that "
    "is there, relative to it, without `..` and without links that lead out of it."
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


def some(names: Sequence[str]) -> str:
    """Name the first few of many."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


SUBJECT_CHARACTERS = 72
"""Where git, forges and most tools fold the first line of a message."""


SESSION_TRAILER = "Agent-Bridge-Session"


def commit_message(work: Work, session: SessionKey, agent: str) -> str:
    """Write the message of what an agent left uncommitted: subject, words, who asked, session."""
    people = {each.speaker.id: each.speaker for each in work.messages}
    words = "\n\n".join(one_text(each.text) for each in work.messages).strip()
    body = [] if not words or words == subject(work, agent) else [words]
    trailers = [f"Co-authored-by: {co_author(who)}" for who in people.values()]
    return "\n\n".join(
        [
            subject(work, agent),
            *body,
            "\n".join([*trailers, f"{SESSION_TRAILER}: {session}"]),
        ]
    )


def subject(work: Work, agent: str) -> str:
    """Write one line about a turn: its title, else the first words that were said."""
    said = work.messages[0].text if work.messages else ""
    for text in (work.title, said):
        line = one_text(text).partition("\n")[0].strip()
        if line:
            short = len(line) <= SUBJECT_CHARACTERS
            return line if short else line[: SUBJECT_CHARACTERS - 1].rstrip() + "…"
    return NO_TITLE.format(agent=agent)


def proposal_body(work: Work, session: SessionKey, agent: str) -> str:
    """Say in a pull request what its agent says, who asked it, and where."""
    names = " and ".join(dict.fromkeys(each.speaker.name for each in work.messages))
    where = work.link or str(session)
    said = PROPOSED.format(people=names or SOMEONE, agent=agent, where=where)
    return "\n\n".join(filter(None, (work.body, said)))


def co_author(who: Speaker) -> str:
    """Name a person as a co-author; without an e-mail address, a placeholder is used."""
    name = re.sub(r"[<>\x00-\x1f\x7f]", "", who.name).strip() or "someone"
    address = re.sub(r"[^A-Za-z0-9@.+_-]", "-", who.id) or "someone"
    return f"{name} <{address if '@' in address else f'{address}@noreply.agent-bridge.invalid'}>"


def one_text(text: str) -> str:
    """Remove control characters, so that nothing in a text ends a line or a message."""
    lines = re.sub(r"[\x00-\x09\x0b-\x1f\x7f]", " ", text.replace("\r\n", "\n")).splitlines()
    return "\n".join(line.rstrip() for line in lines).strip()
