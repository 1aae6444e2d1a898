"""Calls GitHub's API with types: conversations, reviews, checks, branches."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import httpx

from app.clock import Clock
from app.config.network import HostPattern
from app.services.github.auth import (
    CHECKING,
    LOGS,
    LOOKING,
    READING,
    REPORTED,
    RESOLVING,
    SHOWING,
    TALKING,
    AppAuth,
    Installations,
)
from app.services.github.client import RepositoryClient
from app.services.github.names import Name, Spot
from app.services.github.payloads import (
    Annotation,
    BranchRules,
    ChangedFile,
    CheckRun,
    Comment,
    CommitStatus,
    Described,
    GitHubReview,
    Issue,
    Pull,
    ReviewThread,
)
from app.services.github.reviews import LineRemark
from app.services.github.settings import GithubCredentials
from app.services.github.transport import PAGE, REQUESTER, Gone
from app.vault import Vault

logger = logging.getLogger(__name__)

PAGES = 3
"""Pages of a long conversation that are read: the latest ones."""
LOG_BYTES = 16 * 1024
"""What is kept of a log: its end, where the errors are."""
LOG_SECONDS = 30.0
"""How long reading a log may take: the end of a longer one is not worth the wait."""
RENDERED = "application/vnd.github.full+json"
"""Asks for the rendered text too, with addresses from which its attachments can be fetched."""
MINIMIZE = """
mutation ($comment: ID!) {
  minimizeComment(input: {subjectId: $comment, classifier: OUTDATED}) { clientMutationId }
}
"""

THREADS = """
query ($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      reviewThreads(last: 100) {
        nodes {
          id
          isResolved
          isOutdated
          comments(first: 50) {
            nodes {
              fullDatabaseId
              pullRequestReview { fullDatabaseId }
            }
          }
        }
      }
    }
  }
}
"""

RESOLVE = """
mutation ($thread: ID!) {
  resolveReviewThread(input: {threadId: $thread}) { thread { id } }
}
"""


class GithubApi(RepositoryClient):
    """The repositories that one App reaches."""

    @classmethod
    def of(
        cls,
        given: GithubCredentials,
        clock: Clock,
        vault: Vault,
        *,
        api_url: str,
        pictures: Sequence[HostPattern] = (),
    ) -> GithubApi:
        """Call as the App that settings give an agent."""
        auth = AppAuth(
            given.app_id,
            given.private_key,
            clock,
            keep_secret=vault.register,
            installations=Installations(given.installations, given.installation_id),
        )
        return cls(auth, clock, api_url=api_url, vault=vault, pictures=pictures)

    async def permission(self, repository: str, login: str) -> str:
        """Ask what permission a person has in a repository."""
        path = "collaborators/{login}/permission"
        try:
            found = await self._get(repository, path, {"login": login})
        except Gone:
            return "none"
        return str(found["permission"])

    async def rendered(self, spot: Spot, name: Name) -> str:
        """Read a message as GitHub renders it."""
        path = {
            "comment": f"issues/comments/{name.id}",
            "review": f"pulls/{spot.number}/reviews/{name.id}",
            "review-comment": f"pulls/comments/{name.id}",
        }.get(name.kind, f"issues/{spot.number}")
        found = await self._get(spot.repository, path, accept=RENDERED)
        return str(found.get("body_html") or "")

    async def issue(self, spot: Spot) -> Issue:
        """Read an issue or pull request."""
        found = await self._get(spot.repository, f"issues/{spot.number}")
        return Issue.model_validate(found)

    async def pull(self, spot: Spot) -> Pull:
        """Read a pull request."""
        found = await self._get(spot.repository, f"pulls/{spot.number}")
        return Pull.model_validate(found)

    async def comments(self, spot: Spot) -> list[Comment]:
        """Read the end of a conversation, oldest first."""
        count = (await self.issue(spot)).comments
        last = max(1, -(-count // PAGE))
        path = f"issues/{spot.number}/comments?per_page={PAGE}&page="
        found: list[Comment] = []
        for page in range(max(1, last - PAGES + 1), last + 1):
            found += _comments(await self._get(spot.repository, f"{path}{page}"))
        return found

    async def comments_since(self, spot: Spot, since: float) -> list[dict[str, Any]]:
        """Read the comments that were written or changed since a time, as GitHub writes them."""
        moment = f"{datetime.fromtimestamp(since, UTC):%Y-%m-%dT%H:%M:%SZ}"
        path = f"issues/{spot.number}/comments?since={moment}&per_page={PAGE}&page="
        found: list[dict[str, Any]] = []
        for page in range(1, PAGES + 1):
            some = await self._get(spot.repository, f"{path}{page}")
            found += some
            if len(some) < PAGE:
                break
        return found

    async def surroundings(self, spot: Spot) -> dict[str, Any]:
        """Read what comes with an event about an issue or pull request, as GitHub writes it."""
        return {
            "issue": await self._get(spot.repository, f"issues/{spot.number}"),
            "repository": await self._get(spot.repository, may=LOOKING),
            "installation": {"id": await self.installation(spot.repository)},
        }

    async def line_comments(self, spot: Spot) -> list[Comment]:
        """Read the latest comments on lines of a pull request, newest first."""
        path = f"pulls/{spot.number}/comments"
        query = f"?per_page={PAGE}&sort=created&direction=desc&page="
        found: list[Comment] = []
        for page in range(1, PAGES + 1):
            some = _comments(await self._get(spot.repository, f"{path}{query}{page}"))
            found += some
            if len(some) < PAGE:
                break
        return found

    async def review(self, spot: Spot, number: int) -> tuple[GitHubReview, list[Comment]]:
        """Read a review and its comments on lines."""
        path = f"pulls/{spot.number}/reviews/{number}"
        review = GitHubReview.model_validate(await self._get(spot.repository, path))
        comments = [
            each for each in await self.line_comments(spot) if each.pull_request_review_id == number
        ]
        return review, comments[::-1]

    async def reviews(self, spot: Spot) -> list[GitHubReview]:
        """Read the reviews of a pull request, oldest first."""
        path = f"pulls/{spot.number}/reviews"
        return [
            GitHubReview.model_validate(each) for each in await self._all(spot.repository, path)
        ]

    async def patches(self, spot: Spot) -> dict[str, str]:
        """Read what a pull request changes, file by file; a large change is not shown."""
        path = f"pulls/{spot.number}/files"
        files = map(ChangedFile.model_validate, await self._all(spot.repository, path))
        return {file.filename: file.patch for file in files}

    async def add_review(
        self,
        spot: Spot,
        body: str,
        remarks: Sequence[LineRemark],
        commit: str,
        event: Literal["APPROVE", "REQUEST_CHANGES", "COMMENT"] = "COMMENT",
    ) -> GitHubReview:
        """Review a commit of a pull request; without one, its last commit."""
        path = f"pulls/{spot.number}/reviews"
        asked: dict[str, object] = {"event": event, "body": body}
        if commit:
            asked["commit_id"] = commit
        if remarks:
            asked["comments"] = [_on_lines(each) for each in remarks]
        return GitHubReview.model_validate(await self._write(spot.repository, "post", path, asked))

    async def say(self, spot: Spot, body: str, *, under: int | None = None) -> Name:
        """Comment on an issue, or under a comment on a line of its diff."""
        if under is None:
            path = f"issues/{spot.number}/comments"
        else:
            path = f"pulls/{spot.number}/comments/{under}/replies"
        made = await self._write(spot.repository, "post", path, {"body": body})
        return Name("comment" if under is None else "review-comment", made["id"])

    async def edit(self, spot: Spot, name: Name, body: str, *, progress: bool = False) -> None:
        """Change one of our comments."""
        path = _comment_path(name)
        await self._write(spot.repository, "patch", path, {"body": body}, progress=progress)

    async def delete(self, spot: Spot, name: Name) -> None:
        """Delete one of our comments, with the history of its edits."""
        await self._write(spot.repository, "delete", _comment_path(name), {})

    async def comment(self, spot: Spot, name: Name) -> Comment:
        """Read one comment."""
        return Comment.model_validate(await self._get(spot.repository, _comment_path(name)))

    async def minimize(self, spot: Spot, comment: Comment) -> None:
        """Hide one of our comments from readers, as outdated."""
        await self._query(spot.repository, MINIMIZE, TALKING, comment=comment.node_id)

    async def threads(self, spot: Spot) -> list[ReviewThread]:
        """Read the latest threads on lines of a pull request."""
        owner, _, name = spot.repository.partition("/")
        found = await self._query(
            spot.repository, THREADS, TALKING, owner=owner, name=name, number=spot.number
        )
        nodes = found["repository"]["pullRequest"]["reviewThreads"]["nodes"]
        return [ReviewThread.model_validate(each) for each in nodes]

    async def resolve(self, spot: Spot, thread: ReviewThread) -> None:
        """Resolve a thread on a line of a pull request."""
        await self._query(spot.repository, RESOLVE, RESOLVING, thread=thread.id)

    async def react(self, spot: Spot, name: Name, content: str) -> None:
        """React to a message, where GitHub supports it."""
        path = {
            "issue": f"issues/{spot.number}",
            "label": f"issues/{spot.number}",
            "comment": f"issues/comments/{name.id}",
            "review-comment": f"pulls/comments/{name.id}",
        }.get(name.kind)
        if path is not None:
            asked = {"content": content}
            await self._write(spot.repository, "post", f"{path}/reactions", asked, progress=True)

    async def find_pull(self, repository: str, head: str) -> Pull | None:
        """Find the open pull request of a branch."""
        owner = repository.partition("/")[0]
        path = "pulls?state=open{&head}"
        found = await self._get(repository, path, {"head": f"{owner}:{head}"})
        return Pull.model_validate(found[0]) if found else None

    async def default_branch(self, repository: str) -> str:
        """Read the name of the branch that everything is merged into."""
        found = await self._get(repository, may=LOOKING)
        return Described.model_validate(found).default_branch

    async def is_protected(self, repository: str, branch: str) -> bool:
        """Tell whether a rule guards a branch; no rule is known of one that does not exist."""
        path = "branches/{branch}"
        try:
            found = await self._get(repository, path, {"branch": branch}, may=READING)
        except Gone:
            return False
        return BranchRules.model_validate(found).protected

    async def pulls_onto(self, repository: str, branch: str) -> list[int]:
        """List the open pull requests, by number, that are to be merged into a branch."""
        path = "pulls?state=open{&base}"
        found = await self._get(repository, path, {"base": branch})
        return [Pull.model_validate(each).number for each in found]

    async def open_pull(self, repository: str, asked: Mapping[str, str]) -> Pull:
        """Open a pull request."""
        return Pull.model_validate(await self._write(repository, "post", "pulls", asked))

    async def change_pull(self, spot: Spot, asked: Mapping[str, str]) -> Pull:
        """Change what a pull request says."""
        path = f"pulls/{spot.number}"
        return Pull.model_validate(await self._write(spot.repository, "patch", path, asked))

    async def check_runs(self, repository: str, commit: str) -> list[CheckRun]:
        """Read the latest checks of a commit."""
        path = f"commits/{commit}/check-runs"
        found = await self._all(repository, path, "check_runs", may=CHECKING)
        return [CheckRun.model_validate(each) for each in found]

    async def statuses(self, repository: str, commit: str) -> list[CommitStatus]:
        """Read what services last said about a commit, each once."""
        path = f"commits/{commit}/status"
        found = await self._all(repository, path, "statuses", may=REPORTED)
        return [CommitStatus.model_validate(each) for each in found]

    async def annotations(self, repository: str, run: int) -> list[Annotation]:
        """Read the first annotations of a check."""
        path = f"check-runs/{run}/annotations"
        found = await self._get(repository, path, may=CHECKING)
        return [Annotation.model_validate(each) for each in found]

    async def end_of_log(self, repository: str, job: int) -> str:
        """Read the end of a workflow job's log; empty if it cannot be read."""
        token = await self.token(repository, LOGS)
        address = f"{self._api_url}/repos/{repository}/actions/jobs/{job}/logs"
        headers = {"authorization": f"Bearer {token}", "user-agent": REQUESTER}
        tail = b""
        try:
            async with (
                asyncio.timeout(LOG_SECONDS),
                self.client.stream("GET", address, headers=headers) as answer,
            ):
                if answer.status_code != httpx.codes.OK:
                    return ""
                async for data in answer.aiter_bytes():
                    tail = (tail + data)[-LOG_BYTES:]
        except (TimeoutError, httpx.HTTPError) as error:
            logger.info("cannot read the log of job %d: %s", job, error)
            return ""
        return tail.decode(errors="replace")

    async def begin_check(self, repository: str, asked: Mapping[str, object]) -> int:
        """Put a check of our own on a commit."""
        made = await self._write(
            repository, "post", "check-runs", asked, progress=True, may=SHOWING
        )
        return int(made["id"])

    async def change_check(
        self, spot: Spot, run: int, asked: Mapping[str, object], *, progress: bool
    ) -> None:
        """Change a check of our own."""
        path = f"check-runs/{run}"
        await self._write(spot.repository, "patch", path, asked, progress=progress, may=SHOWING)


def _comment_path(name: Name) -> str:
    kind = "pulls" if name.kind == "review-comment" else "issues"
    return f"{kind}/comments/{name.id}"


def _on_lines(remark: LineRemark) -> dict[str, str | int]:
    where: dict[str, str | int] = {"path": remark.path, "line": remark.last, "side": "RIGHT"}
    if remark.first != remark.last:
        where |= {"start_line": remark.first, "start_side": "RIGHT"}
    return where | {"body": remark.words}


def _comments(found: Any) -> list[Comment]:
    return [Comment.model_validate(each) for each in found]
