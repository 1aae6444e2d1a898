"""The shapes of GitHub's JSON, with the fields in use and no others; all else is ignored."""

from __future__ import annotations

from collections.abc import Callable

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
    merged: bool = False
    closed_at: str | None = None


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


class Maker(_Shape):
    """The App that a check is of."""

    slug: str = ""


class Output(_Shape):
    """What a check says about itself."""

    title: str | None = None
    summary: str | None = None
    text: str | None = None
    annotations_count: int = 0


class CheckRun(_Shape):
    """One check of a commit."""

    id: int
    name: str = ""
    status: str = ""
    conclusion: str | None = None
    output: Output = Output()
    app: Maker | None = None
    external_id: str | None = None


class Pressed(_Shape):
    """A button of a check that somebody pressed."""

    identifier: str = ""


class Annotation(_Shape):
    """What a check says about lines of a file."""

    path: str = ""
    start_line: int | None = None
    message: str | None = None


class CheckSuite(_Shape):
    """The checks of one App for one commit."""

    head_branch: str | None = None
    head_sha: str = ""
    app: Maker | None = None


class Status(_Shape):
    """What a service says about a commit, without a check."""

    context: str = ""
    state: str = ""
    description: str | None = None
    target_url: str | None = None


class Commit(_Shape):
    """A commit."""

    sha: str | None = None


class Branch(_Shape):
    """A branch, and where it is."""

    name: str
    commit: Commit = Commit()


class Label(_Shape):
    """A label."""

    name: str = ""


class Owner(_Shape):
    """Whose a repository was before."""

    user: Account | None = None
    organization: Account | None = None


class _OwnerBefore(_Shape):
    owner: Owner = Field(default=Owner(), alias="from")


class _Before(_Shape):
    text: str = Field(default="", alias="from")


class _RepositoryBefore(_Shape):
    name: _Before = _Before()


class Changes(_Shape):
    """What an edit changed."""

    body: _Before | None = None
    old_issue: object = None
    owner: _OwnerBefore | None = None
    repository: _RepositoryBefore | None = None


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
    check_suite: CheckSuite | None = None
    check_run: CheckRun | None = None
    requested_action: Pressed | None = None
    ref: str = ""
    """Of a push: the full name of what moved."""
    after: str = ""
    deleted: bool = False
    sha: str = ""
    """Of a status: the commit that it is about."""
    state: str = ""
    branches: tuple[Branch, ...] = ()
    """Of a status: some that hold the commit, be it at their end or further back."""

    def called(self, name_of: Callable[[Repository], str]) -> Payload:
        """Give the same event with what its repository is called by now."""
        if self.repository is None:
            return self
        now = self.repository.model_copy(update={"full_name": name_of(self.repository)})
        return self.model_copy(update={"repository": now})
