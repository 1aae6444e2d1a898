"""Parses Linear's events into the core's inbound events; pure.

The place is the issue, by the name that people use, so that all sessions of an agent on one issue
are one conversation. What others wrote is passed on as context, never as the speaker's words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from app.errors import DeliveryUnreadable
from app.markdown.hidden import strip
from app.model.inbound import Delivery, Heard
from app.model.keys import PlaceKey
from app.model.text import moment
from app.model.types import Earlier, File, Speaker
from app.services.linear import wording
from app.services.linear.payloads import (
    Anchored,
    Attached,
    Authored,
    IssuePayload,
    LinearComment,
    LinearEvent,
    Parent,
    Said,
    SessionPayload,
    User,
)

Part = TypeVar("Part")

SERVICE: Final = "linear"
AUTOMATION: Final = Speaker("automation", wording.AN_AUTOMATION)
"""The speaker where Linear names none; ALLOWED_BOTS=linear:automation allows it."""
LINEAR: Final = Speaker("linear", "Linear", "bot")
"""The speaker of what no person said: the attachments of an issue."""
UNREAD: Final = "issue:"
"""Prefix of the external id of an issue without a session: posts to it are not shown."""
FILES: Final = 10
"""Maximum files of one message: more are seldom meant for the agent."""

# Linear puts this comment above a session that did not begin with a comment; no person wrote it.
_THREAD = re.compile(r"\s*This thread is for an agent session\b", re.IGNORECASE)
# A file in an issue or a comment: its name, if it has one, and its address at Linear.
_UPLOAD = re.compile(
    r"(?:\[([^\]\n]*)\]\()?"
    r"https://uploads\.linear\.app/([0-9a-f-]{36})/([0-9a-f-]{36})/([0-9a-f-]{36})"
)
_UPLOAD_FOLDER = re.compile(r"linear-([0-9a-f-]{36})-([0-9a-f-]{36})-([0-9a-f-]{36})")
_ROUND = str.maketrans("[]", "()")
_IMAGES = {
    "gif": "image/gif",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "png": "image/png",
    "webp": "image/webp",
}
# A mention as Linear writes it: a name, a link whose text is one, or the address of a profile.
_PROFILE = r"<?https://linear\.app/[^/\s]+/profiles/[\w.-]+>?"
_MENTION = re.compile(rf"\s*(?:\[@[^\]\n]*\]\([^)\s]*\)|@[\w.-]+|{_PROFILE})[:,]?\s*")
_ADDRESSES = re.compile(rf"\s*(?:{_PROFILE}[:,]?\s*)+")


@dataclass(frozen=True, slots=True)
class Task:
    """The text of a delegated issue, used as the prompt if the delegating person wrote it."""

    text: str
    context: str


@dataclass(frozen=True, slots=True)
class LinearIssue:
    """The parts of an issue that the bridge needs: its name and its team."""

    identifier: str
    team: str
    task: Task | None = None
    """Its text, if the issue itself was delegated to the agent."""


@dataclass(frozen=True, slots=True)
class Revoked:
    """The application was removed from the workspace."""


@dataclass(frozen=True, slots=True)
class AccessChanged:
    """The agent can see other teams than before."""


def heard(delivery: Delivery, agent: str) -> Heard | Revoked | AccessChanged | None:
    """Parse a delivery to an agent; None if it is irrelevant.

    Raises:
        DeliveryUnreadable: it is not a Linear event.
    """
    try:
        event = LinearEvent.model_validate_json(delivery.body)
    except ValidationError as error:
        raise DeliveryUnreadable(
            f"not a Linear event: {error.error_count()} validation errors"
        ) from error
    match event.type, event.action:
        case "AgentSessionEvent", "created":
            return _created(event, agent)
        case "AgentSessionEvent", "prompted":
            return _prompted(event, agent)
        case "AppUserNotification", "issueUnassignedFromYou":
            return _taken_away(event, agent)
        case "OAuthApp", "revoked":
            return Revoked()
        case "PermissionChange", "teamAccessChanged":
            return AccessChanged()
        case _:
            return None


def is_placeholder(comment: str) -> bool:
    """Tell whether a comment is the one that Linear puts above a session without one."""
    return _THREAD.match(comment) is not None


def upload_path(file: File) -> str:
    """Return Linear's path of a file that was found in a text."""
    found = _UPLOAD_FOLDER.match(file.url)
    assert found is not None, "it was named here"
    return "/".join(found.groups())


def _created(event: LinearEvent, agent: str) -> Heard:
    session = _present(event.session)
    mention = _mention(event, session)
    issue = session.issue
    written = _issue_text(issue)
    seen = strip(written)
    context = _context(event, mention, written)
    task = None
    if mention is None:
        alone = _context(event, mention, "")
        context, alone = (
            "\n\n".join(filter(None, (each, seen.remark))) for each in (context, alone)
        )
        task = Task(seen.text, alone)
    handle = wording.HANDLE.format(kind="issue") if issue else wording.HANDLE_UNNAMED
    return Heard(
        place=_place(session),
        external=session.id,
        # Not the comment: two agents mentioned in it have a session each.
        message_id=session.id,
        speaker=_speaker(_asker(session, mention), event, agent),
        text=_words(mention.body) if mention else handle,
        spoken=_after_mentions(mention.body) if mention else None,
        mentions=(agent,),
        title=_title(issue),
        link=issue.url if issue else session.url or "",
        said_at=moment(session.created_at),
        files=files_in(mention.body if mention else written, context),
        context=context,
        metadata=_metadata(issue, task),
    )


def in_own_words(heard: Heard, author: dict[str, Any]) -> Heard:
    """Use a delegated issue's text as the prompt if the person who delegated it wrote it.

    A session without a person that has a link already was opened by the agent itself: only it can
    add links.
    """
    about = heard.metadata
    session = Authored.model_validate(author["agentSession"])
    if heard.speaker.id == AUTOMATION.id and session.links:
        return replace(heard, speaker=replace(heard.speaker, kind="agent"))
    is_own = session.bot is None and session.author == heard.speaker.id
    if not isinstance(about, LinearIssue) or about.task is None or not is_own:
        return heard
    return replace(heard, text=about.task.text, context=about.task.context)


def _mention(event: LinearEvent, session: SessionPayload) -> LinearComment | None:
    """Find the comment that mentions an agent; None if the issue itself was delegated."""
    if session.source is not None:
        there = {each.id: each for each in event.previous or ()}
        return there.get(session.source) or LinearComment(
            id=session.source, body=wording.HANDLE_THREAD
        )
    comment = session.comment
    if comment is None or not comment.body.strip() or is_placeholder(comment.body):
        return None
    return comment


def _asker(session: SessionPayload, mention: LinearComment | None) -> User | None:
    """Return who asks: the author of the text, not the person responsible for an app."""
    creator = session.creator
    if mention is None or mention.author in (None, creator and creator.id):
        return creator
    return User(id=str(mention.author), name="another user")


def _prompted(event: LinearEvent, agent: str) -> Heard:
    session, activity = _present(event.session), _present(event.activity)
    words = str(activity.content.get("body", ""))
    issue = session.issue
    return Heard(
        place=_place(session),
        external=session.id,
        message_id=activity.id,
        speaker=_speaker(activity.user, event, agent),
        text=_words(words),
        spoken="stop" if activity.signal == "stop" else _after_mentions(words),
        mentions=(agent,),
        title=_title(issue),
        link=issue.url if issue else session.url or "",
        said_at=moment(activity.created_at),
        files=files_in(words),
        metadata=_metadata(issue),
    )


def _taken_away(event: LinearEvent, agent: str) -> Heard | None:
    """Treat it as a stop: a person who unassigns an agent wants it to end its work."""
    notification = _present(event.notification)
    issue = notification.issue
    if issue is None:
        return None
    return Heard(
        place=PlaceKey(SERVICE, issue.identifier),
        external=f"{UNREAD}{issue.identifier}",
        message_id=notification.id,
        speaker=_speaker(notification.actor, event, agent),
        text=wording.UNASSIGNED.format(agent=agent, issue=issue.identifier),
        spoken="stop",
        mentions=(agent,),
        title=_title(issue),
        link=issue.url,
        metadata=_metadata(issue),
        withdrawn=True,
    )


def _present(part: Part | None) -> Part:
    if part is None:
        raise DeliveryUnreadable("this Linear event lacks its session, activity or notification")
    return part


def _place(session: SessionPayload) -> PlaceKey:
    """Return the issue as place, or the session itself if there is none."""
    return PlaceKey(SERVICE, session.issue.identifier if session.issue else session.id)


def _speaker(user: User | None, event: LinearEvent, agent: str) -> Speaker:
    if user is None:
        return AUTOMATION
    if user.id == event.app_user:
        return Speaker(user.id, agent, kind="agent")
    return Speaker(user.id, user.name)


def list_attachments(data: dict[str, Any]) -> Earlier | None:
    """List the attachments of a session's issue from Linear's answer; None if there are none."""
    session = Attached.model_validate(data["agentSession"])
    nodes, name = session.attachments, session.identifier
    if not nodes:
        return None
    lines = [
        f"- {each.title}{f' ({each.subtitle})' if each.subtitle else ''}: {each.url}"
        for each in nodes
    ]
    titles = (" ".join(each.title.translate(_ROUND).split()) for each in nodes)
    links = [f"[{title}]({each.url})" for title, each in zip(titles, nodes, strict=True)]
    return Earlier(
        message_id=f"attachments of {name}",
        speaker=LINEAR,
        text="\n".join((wording.ATTACHED.format(issue=name), *lines)),
        files=files_in("\n".join(links)),
    )


def _words(said: str) -> str:
    """Leave out addresses of profiles that a text begins with: they tell an agent nothing."""
    found = _ADDRESSES.match(said)
    return said if found is None else said[found.end() :]


def _after_mentions(words: str) -> str:
    while found := _MENTION.match(words):
        words = words[found.end() :]
    return words


def files_in(*texts: str) -> tuple[File, ...]:
    """Find attached files, each once, with names that are safe on any disk."""
    found: dict[str, str] = {}
    for text in texts:
        for name, *parts in _UPLOAD.findall(text):
            upload = "-".join(parts)
            found[upload] = found.get(upload) or name
    files = []
    for upload, name in list(found.items())[:FILES]:
        safe = re.sub(r"[^\w.-]+", "_", name).strip("._")[-80:] or "file"
        media_type = _IMAGES.get(safe.rpartition(".")[2].lower(), "application/octet-stream")
        files.append(File(safe, media_type, f"linear-{upload}/{safe}"))
    return tuple(files)


def _issue_text(issue: Parent | None) -> str:
    return f"{issue.identifier} {issue.title}\n\n{issue.description or ''}".strip() if issue else ""


def _title(issue: IssuePayload | None) -> str:
    return f"{issue.identifier} {issue.title}" if issue else ""


def _metadata(issue: IssuePayload | None, task: Task | None = None) -> LinearIssue | None:
    if issue is None:
        return None
    return LinearIssue(issue.identifier, issue.team.key if issue.team else "", task)


def _context(event: LinearEvent, mention: LinearComment | None, task: str) -> str:
    """Join the context of an event; Linear's own summary may already include parts of it."""
    given = event.prompt_context or ""
    issue = event.session.issue if event.session else None
    parts = [given or task]
    if issue is not None and issue.parent is not None:
        parts.append(wording.PARENT.format(issue=_issue_text(issue.parent)))
    parts += _unless_in(given, wording.GUIDANCE, event.guidance or ())
    own = mention and mention.id
    before = [
        each for each in event.previous or () if each.id != own and not is_placeholder(each.body)
    ]
    parts += _unless_in(given, wording.EARLIER, before)
    return "\n\n".join(filter(None, parts))


def _unless_in(given: str, heading: str, comments: Sequence[Said]) -> list[str]:
    bodies = [each.body for each in comments if each.body.strip() and each.body not in given]
    return [heading, *bodies] if bodies else []


@dataclass(frozen=True, slots=True)
class SessionSubject:
    """What a session is about."""

    kind: str
    title: str
    url: str
    text: str = ""


def read_subject(data: dict[str, Any]) -> SessionSubject | None:
    """Read what a session is about from Linear's answer; None if it is about nothing else."""
    session = Anchored.model_validate(data["agentSession"])
    if (pull := session.pull_request) is not None:
        return SessionSubject("pull request", f"#{pull.number:g} {pull.title}", pull.url)
    if (document := session.document) is not None:
        text = session.document_text or ""
        return SessionSubject("document", document.title, document.url, text)
    if (project := session.project) is not None:
        return SessionSubject("project", project.name, project.url, project.content or "")
    return None


def add_subject(heard: Heard, subject: SessionSubject) -> Heard:
    """Tell an agent what a session is about, unless Linear's own summary has it."""
    about = f"{subject.kind.capitalize()}: {subject.title}\n{subject.url}"
    text = "" if subject.text and subject.text in heard.context else subject.text
    is_unnamed = heard.text == wording.HANDLE_UNNAMED
    return replace(
        heard,
        text=wording.HANDLE.format(kind=subject.kind) if is_unnamed else heard.text,
        title=heard.title or subject.title,
        link=subject.url,
        context="\n\n".join(filter(None, (about, text, heard.context))),
    )
