"""The shapes of GitHub's JSON, with the fields in use and no others; all else is ignored."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class _Shape(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Account(_Shape):
    """A person, a bot or an organisation."""

    id: int
    login: str
    type: str = "User"

    @property
    def is_bot(self) -> bool:
        """Whether no person is behind it."""
        return self.type == "Bot"


class Repository(_Shape):
    """A repository, by its number and by the name it has now."""

    id: int
    full_name: str


class Opened(Repository):
    """A repository that an App was let into."""

    pushed_at: str | None = None
    archived: bool = False
    disabled: bool = False


class Issue(_Shape):
    """An issue; a pull request is one too, and then says so."""

    number: int
    title: str = ""
    body: str | None = None
    user: Account | None = None
    html_url: str = ""
    created_at: str = ""
    updated_at: str = ""
    comments: int = 0
    pull_request: object = None


class Head(_Shape):
    """One end of a pull request."""

    ref: str = ""
    sha: str = ""
    repo: Repository | None = None


class Pull(_Shape):
    """A pull request."""

    number: int
    title: str = ""
    body: str | None = None
    user: Account | None = None
    html_url: str = ""
    created_at: str = ""
    updated_at: str = ""
    head: Head = Head()
    base: Head = Head()


class Comment(_Shape):
    """A comment, in a conversation or on a line of a diff."""

    id: int
    body: str | None = None
    user: Account | None = None
    html_url: str = ""
    created_at: str = ""
    updated_at: str = ""
    path: str = ""
    line: int | None = None
    start_line: int | None = None
    original_line: int | None = None
    diff_hunk: str = ""
    pull_request_review_id: int | None = None
    in_reply_to_id: int | None = None


class Review(_Shape):
    """What somebody submitted about a pull request, without its comments on lines."""

    id: int
    body: str | None = None
    user: Account | None = None
    html_url: str = ""
    state: str = ""
    submitted_at: str | None = None


class ChangedFile(_Shape):
    """What a pull request changes in one file."""

    filename: str
    patch: str = ""


class Label(_Shape):
    """A label."""

    name: str = ""


class _Before(_Shape):
    text: str = Field(default="", alias="from")


class Changes(_Shape):
    """What an edit changed."""

    body: _Before | None = None
    old_issue: object = None


class Installation(_Shape):
    """Where an App is installed."""

    id: int


class Payload(_Shape):
    """An event of any kind that we listen to."""

    action: str = ""
    repository: Repository | None = None
    sender: Account | None = None
    installation: Installation | None = None
    issue: Issue | None = None
    pull_request: Pull | None = None
    comment: Comment | None = None
    review: Review | None = None
    label: Label | None = None
    changes: Changes | None = None
