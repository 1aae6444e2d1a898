"""Models GitHub's JSON, with only the fields in use; all else is ignored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from pydantic import AliasPath, BaseModel, ConfigDict, Field


class _Shape(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


def _at(*path: str, default: Any = None) -> Any:
    """Take a value from further down in the JSON."""
    return Field(default, validation_alias=AliasPath(*path))


class GitHubAccount(_Shape):
    """A person, a bot or an organisation."""

    id: int
    login: str
    type: str = "User"

    @property
    def is_bot(self) -> bool:
        """Whether no person is behind it."""
        return self.type == "Bot"


class GitHubRepository(_Shape):
    """A repository, by its number and by the name it has now."""

    id: int
    full_name: str
    owner: GitHubAccount | None = None


class Described(GitHubRepository):
    """A repository, with the branch that everything is merged into."""

    default_branch: str


class BranchRules(_Shape):
    """Whether a rule of its repository guards a branch."""

    protected: bool


class AccessibleRepository(GitHubRepository):
    """A repository that an App can access."""

    pushed_at: str | None = None
    archived: bool = False
    disabled: bool = False


class Head(_Shape):
    """One end of a pull request."""

    ref: str = ""
    sha: str = ""
    repo: GitHubRepository | None = None


class Issue(_Shape):
    """An issue; a pull request is one too, and then says so."""

    number: int
    title: str = ""
    body: str | None = None
    user: GitHubAccount | None = None
    html_url: str = ""
    created_at: str = ""
    updated_at: str = ""
    comments: int = 0
    pull_request: object = None

    @property
    def is_pull(self) -> bool:
        """Whether it is a pull request."""
        return self.pull_request is not None


class Pull(Issue):
    """A pull request."""

    head: Head = Head()
    base: Head = Head()
    merged: bool = False
    closed_at: str | None = None

    @property
    def is_pull(self) -> bool:
        """Whether it is a pull request."""
        return True


class Comment(_Shape):
    """A comment, in a conversation or on a line of a diff."""

    id: int
    node_id: str = ""
    """What GraphQL calls it."""
    body: str | None = None
    user: GitHubAccount | None = None
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


class GitHubReview(_Shape):
    """A review of a pull request, without its line comments."""

    id: int
    body: str | None = None
    user: GitHubAccount | None = None
    html_url: str = ""
    state: str = ""
    submitted_at: str | None = None


class ThreadComment(_Shape):
    """A comment on a line, as a thread lists it."""

    id: int = Field(alias="fullDatabaseId")
    review: int | None = _at("pullRequestReview", "fullDatabaseId")


class ReviewThread(_Shape):
    """A thread on a line of a pull request."""

    id: str
    is_resolved: bool = Field(alias="isResolved")
    is_outdated: bool = Field(alias="isOutdated")
    """Whether the lines that it is about have changed since."""
    comments: tuple[ThreadComment, ...] = Field(validation_alias=AliasPath("comments", "nodes"))


class ChangedFile(_Shape):
    """What a pull request changes in one file."""

    filename: str
    patch: str = ""


class CheckOutput(_Shape):
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
    head_sha: str = ""
    output: CheckOutput = CheckOutput()
    app: str = _at("app", "slug", default="")
    """The name of the App whose check it is."""
    external_id: str | None = None


class Annotation(_Shape):
    """What a check says about lines of a file."""

    path: str = ""
    start_line: int | None = None
    message: str | None = None


class CheckSuite(_Shape):
    """The checks of one App for one commit."""

    head_branch: str | None = None
    head_sha: str = ""
    app: str = _at("app", "slug", default="")
    """The name of the App whose check it is."""


class CommitStatus(_Shape):
    """What a service says about a commit, without a check."""

    context: str = ""
    state: str = ""
    description: str | None = None
    target_url: str | None = None


class GitHubBranch(_Shape):
    """A branch, and where it is."""

    name: str
    sha: str | None = _at("commit", "sha")


class GitHubEvent(_Shape):
    """Any event: its action, and where it comes from."""

    action: str = ""
    installation: int | None = _at("installation", "id")
    repository: GitHubRepository | None = None

    def rename(self, name_of: Callable[[GitHubRepository], str]) -> Self:
        """Return the same event with the current name of its repository."""
        if self.repository is None:
            return self
        now = self.repository.model_copy(update={"full_name": name_of(self.repository)})
        return self.model_copy(update={"repository": now})


class RepositoryEvent(GitHubEvent):
    """An event in a repository."""

    repository: GitHubRepository


class NamingEvent(RepositoryEvent):
    """A repository was made, renamed, transferred or changed otherwise."""

    old_name: str | None = _at("changes", "repository", "name", "from")
    old_organization: str | None = _at("changes", "owner", "from", "organization", "login")
    old_user: str | None = _at("changes", "owner", "from", "user", "login")


class SpokenEvent(RepositoryEvent):
    """Words were written, edited or deleted, in an issue or a pull request."""

    sender: GitHubAccount
    text_before: str | None = _at("changes", "body", "from")
    """The text before an edit; None if the event does not edit it."""
    label: str = _at("label", "name", default="")
    moved_from: object = _at("changes", "old_issue")
    """The issue that an issue was in another repository."""


class IssueEvent(SpokenEvent):
    """An issue, or what it says, changed."""

    issue: Issue


class PullEvent(SpokenEvent):
    """A pull request, or what it says, changed."""

    issue: Pull = Field(alias="pull_request")


class CommentEvent(SpokenEvent):
    """A comment on an issue or a pull request."""

    issue: Issue
    comment: Comment


class ReviewEvent(SpokenEvent):
    """A review of a pull request, without its comments on lines."""

    pull: Pull = Field(alias="pull_request")
    part: GitHubReview = Field(alias="review")


class LineCommentEvent(SpokenEvent):
    """A comment on a line of a pull request."""

    pull: Pull = Field(alias="pull_request")
    part: Comment = Field(alias="comment")


class ButtonEvent(RepositoryEvent):
    """A button of a check was pressed, or a check changed."""

    sender: GitHubAccount
    check_run: CheckRun
    pressed: str = _at("requested_action", "identifier", default="")


class SuiteEvent(RepositoryEvent):
    """The checks of one App."""

    check_suite: CheckSuite


class StatusEvent(RepositoryEvent):
    """A service said something about a commit, without a check."""

    sha: str
    state: str
    branches: tuple[GitHubBranch, ...] = ()
    """Some of the branches that contain the commit, at their end or earlier."""


class PushEvent(RepositoryEvent):
    """A branch or a tag moved."""

    ref: str
    """The full name of what moved."""
    after: str
    deleted: bool = False
