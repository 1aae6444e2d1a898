"""What an App calls by GraphQL: a part of GitHub's schema, by its own names, over the records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from graphql import GraphQLError, build_schema, graphql_sync

from sim.github.answers import Refused, Reply
from sim.github.apps import is_granted
from sim.github.records import Records
from sim.github.state import Comment, Issue, Repository, Token

SCHEMA = build_schema("""
type Query { repository(owner: String!, name: String!): Repository }
type Repository { pullRequest(number: Int!): PullRequest }
type PullRequest { reviewThreads(first: Int, last: Int): PullRequestReviewThreadConnection! }
type PullRequestReviewThreadConnection { nodes: [PullRequestReviewThread] }
type PullRequestReviewThread {
  id: ID!
  isResolved: Boolean!
  isOutdated: Boolean!
  comments(first: Int, last: Int): PullRequestReviewCommentConnection!
}
type PullRequestReviewCommentConnection { nodes: [PullRequestReviewComment] }
type PullRequestReviewComment {
  fullDatabaseId: BigInt
  pullRequestReview: PullRequestReview
}
type PullRequestReview { fullDatabaseId: BigInt }
scalar BigInt
enum ReportedContentClassifiers { ABUSE DUPLICATE LOW_QUALITY OFF_TOPIC OUTDATED RESOLVED SPAM }
input MinimizeCommentInput {
  classifier: ReportedContentClassifiers!
  clientMutationId: String
  subjectId: ID!
}
type MinimizeCommentPayload { clientMutationId: String }
input ResolveReviewThreadInput { clientMutationId: String threadId: ID! }
type ResolveReviewThreadPayload { thread: PullRequestReviewThread }
type Mutation {
  minimizeComment(input: MinimizeCommentInput!): MinimizeCommentPayload
  resolveReviewThread(input: ResolveReviewThreadInput!): ResolveReviewThreadPayload
}
""")


@dataclass(frozen=True)
class Root:
    """Everything that one token reaches; a field without an argument is an attribute."""

    github: Records
    token: Token

    def repository(self, _info: Any, owner: str, name: str) -> dict[str, Any]:
        """Find a repository."""
        self._need("pull_requests", "read")
        found = self.github.repositories.get(f"{owner}/{name}".lower())
        if found is None or found.id not in self.token.repositories:
            raise _error("NOT_FOUND", f"Could not resolve to a Repository with '{owner}/{name}'.")
        return {"pullRequest": lambda _info, number: self._pull(found, number)}

    def minimizeComment(self, _info: Any, input: dict[str, str]) -> dict[str, None]:  # noqa: A002, N802 - GitHub's names
        """Hide a comment."""
        for repository in self._reached():
            for issue, comment in (*repository.comments(), *repository.line_comments()):
                if comment.node_id == input["subjectId"]:
                    self._need("pull_requests" if issue.pull else "issues", "write")
                    comment.minimized = input["classifier"]
                    return {"clientMutationId": None}
        raise _error("NOT_FOUND", "Could not resolve to a node with the global id.")

    def resolveReviewThread(self, _info: Any, input: dict[str, str]) -> dict[str, Any]:  # noqa: A002, N802 - GitHub's names
        """Resolve a thread, which takes the right to push as well."""
        for repository in self._reached():
            for issue, comment in repository.line_comments():
                if _thread_id(comment) == input["threadId"]:
                    self._need("pull_requests", "write")
                    self._need("contents", "write")
                    comment.resolved_by = self.token.installation.app.slug
                    return {"thread": self._thread(issue, comment)}
        raise _error("NOT_FOUND", "Could not resolve to a node with the global id.")

    def _reached(self) -> list[Repository]:
        return [self.github.by_id[each] for each in self.token.repositories]

    def _pull(self, repository: Repository, number: int) -> dict[str, Any]:
        issue = repository.issues.get(number)
        if issue is None or issue.pull is None:
            raise _error("NOT_FOUND", f"Could not resolve to a PullRequest with number {number}.")
        roots = [each for each in issue.pull.comments if each.reply_to is None]
        nodes = [self._thread(issue, each) for each in roots]
        return {"reviewThreads": lambda _info, first=None, last=None: {"nodes": nodes[-last:]}}

    def _thread(self, issue: Issue, root: Comment) -> dict[str, Any]:
        assert issue.pull is not None
        said = [root, *(each for each in issue.pull.comments if each.reply_to == root.id)]
        changed = self.github.git.git(
            issue.repository.full_name,
            *("diff", "--name-only", root.commit, issue.pull.sha, "--", root.path),
        )
        nodes = [
            {
                "fullDatabaseId": str(each.id),
                "pullRequestReview": {"fullDatabaseId": str(each.review)},
            }
            for each in said
        ]
        return {
            "id": _thread_id(root),
            "isResolved": bool(root.resolved_by),
            "isOutdated": bool(changed),
            "comments": lambda _info, first=None, last=None: {"nodes": nodes[:first]},
        }

    def _need(self, name: str, level: str) -> None:
        if not is_granted(self.token.permissions, name, level):
            raise _error("FORBIDDEN", "Resource not accessible by integration")


def answer(github: Records, token: Token, data: dict[str, Any], count: Callable[[], None]) -> Reply:
    """Carry out one document; GraphQL says no with a 200."""
    if not isinstance(data.get("query"), str):
        raise Refused(400, "A query attribute must be specified and must be a string.")
    if data["query"].lstrip().startswith("mutation"):
        count()
    done = graphql_sync(
        SCHEMA, data["query"], Root(github, token), variable_values=data.get("variables")
    )
    shown: dict[str, Any] = {"data": done.data}
    if done.errors:
        shown["errors"] = [
            {"type": (each.extensions or {}).get("type", ""), "message": each.message}
            for each in done.errors
        ]
    return Reply(200, shown)


def _thread_id(root: Comment) -> str:
    return f"PRRT_{root.id}"


def _error(kind: str, message: str) -> GraphQLError:
    return GraphQLError(message, extensions={"type": kind})
