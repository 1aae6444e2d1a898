"""Models Linear's JSON, with only the fields in use; all else is ignored."""

from __future__ import annotations

from typing import Any

from pydantic import AliasPath, BaseModel, ConfigDict, Field


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


def _at(*path: str, default: Any = None) -> Any:
    """Take a value from further down in the JSON."""
    return Field(default, validation_alias=AliasPath(*path))


class User(_Model):
    """A person or an app user."""

    id: str
    name: str


class Team(_Model):
    """A team, by the key in its issues' names."""

    key: str


class Parent(_Model):
    """An issue above another one."""

    identifier: str
    title: str
    description: str | None = None


class IssuePayload(Parent):
    """An issue."""

    url: str
    team: Team | None = None
    parent: Parent | None = None
    """Known only if the bridge asked for it: in webhooks it is part of Linear's summary."""


class Said(_Model):
    """What someone wrote."""

    body: str


class LinearComment(Said):
    """A comment."""

    id: str
    author: str | None = Field(default=None, alias="userId")


class SessionPayload(_Model):
    """An agent session."""

    id: str
    created_at: str | None = Field(default=None, alias="createdAt")
    url: str | None = None
    issue: IssuePayload | None = None
    creator: User | None = None
    """Who is responsible: if an app speaks for a person, that person."""
    comment: LinearComment | None = None
    """The first comment of the session's thread."""
    source: str | None = Field(default=None, alias="sourceCommentId")
    """The comment that the agent was mentioned in, if it is in another thread."""


class Activity(_Model):
    """What a person said in a session."""

    id: str
    created_at: str | None = Field(default=None, alias="createdAt")
    content: dict[str, Any]
    signal: str | None = None
    user: User | None = None


class Notification(_Model):
    """What the inbox of the agent's user shows."""

    id: str
    issue: IssuePayload | None = None
    actor: User | None = None


class LinearAttachment(_Model):
    """A link on an issue."""

    title: str
    url: str
    subtitle: str | None = None


class Attached(_Model):
    """A session with the attachments of its issue."""

    identifier: str = _at("issue", "identifier", default="")
    attachments: tuple[LinearAttachment, ...] = _at("issue", "attachments", "nodes", default=())


class Link(_Model):
    """A link on a session."""

    url: str


class Authored(_Model):
    """A session with who wrote its issue."""

    links: tuple[Link, ...] = Field(default=(), alias="externalLinks")
    author: str | None = _at("issue", "creator", "id")
    bot: object = _at("issue", "botActor")
    """What wrote the issue if no person did."""


class PullRequest(_Model):
    """A pull request that Linear shows."""

    number: float
    title: str
    url: str


class Document(_Model):
    """A document."""

    title: str
    url: str


class Project(_Model):
    """A project."""

    name: str
    content: str | None = None
    url: str


class Anchored(_Model):
    """A session with what it is about, if that is no issue."""

    pull_request: PullRequest | None = Field(default=None, alias="pullRequest")
    document: Document | None = _at("comment", "documentContent", "document")
    document_text: str | None = _at("comment", "documentContent", "content")
    project: Project | None = _at("comment", "project")


class LinearEvent(_Model):
    """One webhook."""

    type: str
    action: str = ""
    app_user: str = Field(default="", alias="appUserId")
    session: SessionPayload | None = Field(default=None, alias="agentSession")
    activity: Activity | None = Field(default=None, alias="agentActivity")
    notification: Notification | None = None
    prompt_context: str | None = Field(default=None, alias="promptContext")
    guidance: tuple[Said, ...] | None = None
    previous: tuple[LinearComment, ...] | None = Field(default=None, alias="previousComments")
