"""What an App calls about people and conversations: permissions, issues, comments, reactions."""

from __future__ import annotations

from collections.abc import Iterable

from sim.github.answers import Refused, Reply, invalid, not_found
from sim.github.calls import Asked, Routes
from sim.github.state import LEGACY, Comment, Issue

REACTIONS = {"+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes"}
EITHER = "issues|pull_requests"
"""A conversation may be of an issue or of a pull request: either permission opens it."""

routes = Routes()


@routes.on("GET", "/repos/{owner}/{name}/collaborators/{login}/permission", "metadata", "read")
def _permission(asked: Asked) -> Reply:
    account = asked.github.accounts.get(asked.part("login").lower())
    if account is None:
        raise Refused(404, "That is not a user")
    role = asked.repository.role(account)
    shown = {"permission": LEGACY.get(role, role), "role_name": role, "user": account.json()}
    return Reply(200, shown)


@routes.on("GET", "/repos/{owner}/{name}/issues/{number}", EITHER, "read")
def _issue(asked: Asked) -> Reply:
    return Reply(200, asked.issue().json())


@routes.on("GET", "/repos/{owner}/{name}/issues/{number}/comments", EITHER, "read")
def _comments(asked: Asked) -> Reply:
    issue, since = asked.issue(), asked.request.parameter("since", "")
    listed = [comment.json(issue) for comment in issue.comments]
    return asked.page([each for each in listed if each["updated_at"] >= since])


@routes.on("POST", "/repos/{owner}/{name}/issues/{number}/comments", EITHER, "write")
def _say(asked: Asked) -> Reply:
    issue = asked.issue()
    if issue.locked:
        raise Refused(403, "Unable to create comment because issue is locked.")
    comment = asked.github.add_comment(issue, asked.app.bot, asked.words(), asked.app)
    return Reply(201, comment.json(issue))


@routes.on("GET", "/repos/{owner}/{name}/issues/comments/{id}", EITHER, "read")
def _comment(asked: Asked) -> Reply:
    issue, comment = _found(asked, asked.repository.comments())
    return Reply(200, comment.json(issue))


@routes.on("GET", "/repos/{owner}/{name}/pulls/comments/{id}", "pull_requests", "read")
def _comment_on_line(asked: Asked) -> Reply:
    issue, comment = _found(asked, asked.repository.line_comments())
    return Reply(200, comment.json(issue))


@routes.on("PATCH", "/repos/{owner}/{name}/issues/comments/{id}", EITHER, "write")
def _change(asked: Asked) -> Reply:
    return _changed(asked, *_found(asked, asked.repository.comments()))


@routes.on("PATCH", "/repos/{owner}/{name}/pulls/comments/{id}", "pull_requests", "write")
def _change_on_line(asked: Asked) -> Reply:
    return _changed(asked, *_found(asked, asked.repository.line_comments()))


@routes.on("DELETE", "/repos/{owner}/{name}/issues/comments/{id}", EITHER, "write")
def _delete(asked: Asked) -> Reply:
    return _deleted(asked, *_found(asked, asked.repository.comments()))


@routes.on("DELETE", "/repos/{owner}/{name}/pulls/comments/{id}", "pull_requests", "write")
def _delete_on_line(asked: Asked) -> Reply:
    return _deleted(asked, *_found(asked, asked.repository.line_comments()))


@routes.on("POST", "/repos/{owner}/{name}/issues/comments/{id}/reactions", EITHER, "write")
def _react(asked: Asked) -> Reply:
    return _reacted(asked, _found(asked, asked.repository.comments())[1].reactions)


@routes.on("POST", "/repos/{owner}/{name}/pulls/comments/{id}/reactions", "pull_requests", "write")
def _react_on_line(asked: Asked) -> Reply:
    return _reacted(asked, _found(asked, asked.repository.line_comments())[1].reactions)


@routes.on("POST", "/repos/{owner}/{name}/issues/{number}/reactions", EITHER, "write")
def _react_on_issue(asked: Asked) -> Reply:
    return _reacted(asked, asked.issue().reactions)


def _found(asked: Asked, comments: Iterable[tuple[Issue, Comment]]) -> tuple[Issue, Comment]:
    for issue, comment in comments:
        if str(comment.id) == asked.part("id"):
            return issue, comment
    raise not_found()


def _changed(asked: Asked, issue: Issue, comment: Comment) -> Reply:
    if comment.user is not asked.app.bot:
        raise Refused(403, "Must have admin rights to Repository.")
    asked.github.change_comment(issue, comment, comment.user, asked.words())
    return Reply(200, comment.json(issue))


def _deleted(asked: Asked, issue: Issue, comment: Comment) -> Reply:
    if comment.user is not asked.app.bot:
        raise Refused(403, "Must have admin rights to Repository.")
    asked.github.remove_comment(issue, comment, comment.user)
    return Reply(204)


def _reacted(asked: Asked, reactions: list[tuple[str, str]]) -> Reply:
    content = asked.request.data.get("content")
    if content not in REACTIONS:
        raise invalid("Reaction", "content", "is not a reaction")
    made = (asked.app.bot.login, str(content))
    if made in reactions:
        return Reply(200, {"id": 1, "content": content})
    reactions.append(made)
    return Reply(201, {"id": 1, "content": content})
