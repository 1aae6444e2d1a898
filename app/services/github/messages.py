"""Reads what people write in issues, pull requests and comments, and how they change it; pure.

Only the author's own words count. What an App of ours wrote is never heard, an edit of other
people's words starts nothing, and hidden text is removed before an agent reads it.

An edit or a deletion never starts anything. Only authors can change their words; anyone with the
permission can delete them. Of all Apps that receive the event, only that of the agent which the
words named first reports it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.core.commands import parse as parse_command
from app.markdown.hidden import Visible, strip
from app.model.inbound import Changed, Heard
from app.model.text import moment
from app.services.github import wording
from app.services.github.names import Identities, Name, Spot
from app.services.github.payloads import (
    Comment,
    CommentEvent,
    GitHubAccount,
    GitHubReview,
    Issue,
    IssueEvent,
    PullEvent,
    SpokenEvent,
)

LABEL = "agent:"


@dataclass(frozen=True, slots=True)
class EventReader:
    """The agent that an event is read for, among all of ours."""

    agent: str
    us: Identities


@dataclass(frozen=True, slots=True)
class Words:
    """What the sender of an event said, and which agents it speaks to."""

    name: Name
    said: Visible
    mentions: tuple[str, ...]


def hear_label(event: IssueEvent | PullEvent, reader: EventReader) -> Heard | None:
    """Hear a label that names one of our agents."""
    agents = {f"{LABEL}{each.agent}": each.agent for each in reader.us.known}
    agent = agents.get(event.label.casefold())
    if agent is None:
        return None
    # A label has no number; the time it was set is the same for every App.
    name = Name("label", event.issue.number, f"{agent} {event.issue.updated_at}")
    said = Visible(wording.HANDLE_LABELLED, 0)
    return hear(event, event.issue, Words(name, said, (agent,)), reader.us)


def hear_description(event: IssueEvent | PullEvent, reader: EventReader) -> Heard | None:
    """Hear the description of an issue or a pull request, if it mentions one of our agents."""
    issue = event.issue
    said = strip(issue.body or "")
    mentions = new_mentions(event, said.text, reader.us)
    if event.moved_from is not None or not mentions or not is_own(event, issue.user):
        return None
    name = Name("issue", issue.number, issue.updated_at if event.action == "edited" else "")
    return hear(event, issue, Words(name, said, mentions), reader.us)


def hear_comment(event: CommentEvent, reader: EventReader) -> Heard | None:
    """Hear a comment; an edited one only if it mentions further agents."""
    comment = event.comment
    said = strip(comment.body or "")
    mentions = new_mentions(event, said.text, reader.us)
    edited = comment.updated_at if event.action == "edited" else ""
    if not is_own(event, comment.user) or (edited and not mentions):
        return None
    words = Words(Name("comment", comment.id, edited), said, mentions)
    heard = hear(event, event.issue, words, reader.us)
    at = moment(edited or comment.created_at)
    return heard and replace(heard, link=comment.html_url, said_at=at)


def correct(event: IssueEvent | PullEvent | CommentEvent, reader: EventReader) -> Changed | None:
    """Return the new text of a description or a comment, if this agent is to report it."""
    part = event.comment if isinstance(event, CommentEvent) else event.issue
    name = Name("comment", part.id) if isinstance(part, Comment) else Name("issue", part.number)
    if agents_before(event, part, reader.us)[:1] != (reader.agent,):
        return None
    return change(event, event.issue, name, part, reader.us)


def hear(event: SpokenEvent, issue: Issue, words: Words, us: Identities) -> Heard | None:
    """Make a message of words in an issue or a pull request; None if they are our own."""
    speaker = us.speaker(event.sender)
    if speaker.kind == "agent":
        return None
    spot, said = Spot(event.repository.full_name, issue.number), words.said
    mentions = words.mentions
    return Heard(
        place=spot.place,
        external=str(spot),
        message_id=str(words.name),
        speaker=speaker,
        text=said.text,
        spoken=command_in(said.text, mentions, None, us),
        mentions=mentions,
        only_agent_answers=False,
        overheard=not mentions,
        title=strip(issue.title).text,
        link=issue.html_url,
        said_at=moment(issue.updated_at),
        pointed=point(issue.number, mentions, us.agent(issue.user)) if issue.is_pull else "",
        context=said.remark,
    )


def change(
    event: SpokenEvent,
    issue: Issue,
    name: Name,
    part: Issue | Comment | GitHubReview,
    us: Identities,
) -> Changed | None:
    """Make a correction of an edit or a deletion; None if it leaves the author's words alone."""
    is_deleted = event.action == "deleted"
    is_edit = event.text_before is not None and is_own(event, part.user)
    if part.user is None or not (is_deleted or is_edit):
        return None
    spot = Spot(event.repository.full_name, issue.number)
    text = None if is_deleted else strip(part.body or "").text
    return Changed(spot.place, str(spot), str(name), us.speaker(part.user), text)


def command_in(text: str, mentions: Sequence[str], reply_to: str | None, us: Identities) -> str:
    """Tell what may be a command: what was said to an agent, and a plain stop to all of them."""
    if mentions or reply_to is not None:
        return us.after(text)
    command = parse_command(text)
    return text if command is not None and command.name == "stop" else ""


def new_mentions(event: SpokenEvent, text: str, us: Identities) -> tuple[str, ...]:
    """List the agents that a text mentions, without those that it mentioned before an edit."""
    mentions = us.mentioned(text)
    if event.action != "edited":
        return mentions
    if event.text_before is None:
        return ()
    before = us.mentioned(strip(event.text_before).text)
    return tuple(agent for agent in mentions if agent not in before)


def agents_before(
    event: SpokenEvent, part: Issue | Comment | GitHubReview, us: Identities
) -> tuple[str, ...]:
    """List the agents that words named before they were edited or deleted."""
    return us.mentioned(strip(event.text_before or part.body or "").text)


def is_own(event: SpokenEvent, author: GitHubAccount | None) -> bool:
    """Tell whether words are the sender's: other people may edit or move them."""
    return author is not None and author.id == event.sender.id


def point(number: int, mentions: Sequence[str], author: str | None, *more: str) -> str:
    """Say what a message is about, and tell agents that did not open it how to review it."""
    how = wording.HOW_TO_REVIEW if set(mentions) - {author} else ""
    pull = wording.PULL_REQUEST.format(number=number)
    return ", ".join(filter(None, (pull, *more, how)))
