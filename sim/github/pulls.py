"""What an App calls about branches and pull requests: opening, changing, reviewing."""

from __future__ import annotations

from typing import Any

from sim.github.answers import Reply, invalid, not_found, unprocessable
from sim.github.calls import Asked, Routes
from sim.github.records import LineWords
from sim.github.state import Check, Issue, Pull, Review

STATES = {"COMMENT": "commented", "APPROVE": "approved", "REQUEST_CHANGES": "changes_requested"}
PULLS = "pull_requests"

routes = Routes()


@routes.on("GET", "/repos/{owner}/{name}", "metadata", "read")
def _repository(asked: Asked) -> Reply:
    return Reply(200, asked.repository.json())


@routes.on("GET", "/repos/{owner}/{name}/branches/{branch}", "contents", "read")
def _branch(asked: Asked) -> Reply:
    branch = asked.part("branch")
    commit = asked.github.git.resolve(asked.repository.full_name, branch)
    if not commit:
        raise not_found()
    shown = {"name": branch, "commit": {"sha": commit}}
    return Reply(200, shown | {"protected": branch in asked.repository.protected})


@routes.on("GET", "/repos/{owner}/{name}/pulls", PULLS, "read")
def _list(asked: Asked) -> Reply:
    head, base = asked.request.parameter("head"), asked.request.parameter("base")
    state = asked.request.parameter("state", "open")
    return asked.page(
        [
            issue.pull_json()
            for issue in asked.repository.issues.values()
            if issue.pull
            and state in {issue.state, "all"}
            and head in {"", _label(issue.pull)}
            and base in {"", issue.pull.base}
        ]
    )


@routes.on("POST", "/repos/{owner}/{name}/pulls", PULLS, "write")
def _open(asked: Asked) -> Reply:
    given = asked.request.data
    for name in ("title", "head", "base"):
        if not isinstance(given.get(name), str) or not given[name]:
            raise invalid("PullRequest", name, f"{name} is missing")
    issue = asked.github.add_pull(
        asked.repository,
        asked.app.bot,
        given["title"],
        given.get("body"),
        head=given["head"],
        base=given["base"],
    )
    assert issue.pull is not None
    asked.repository.checks += [
        Check(None, job, issue.pull.sha, asked.github.now(), "in_progress")
        for job in asked.repository.workflows
    ]
    return Reply(201, issue.pull_json())


@routes.on("GET", "/repos/{owner}/{name}/pulls/{number}", PULLS, "read")
def _pull(asked: Asked) -> Reply:
    return Reply(200, asked.pull().pull_json())


@routes.on("PATCH", "/repos/{owner}/{name}/pulls/{number}", PULLS, "write")
def _change(asked: Asked) -> Reply:
    issue, given = asked.pull(), asked.request.data
    issue.title, issue.body = given.get("title", issue.title), given.get("body", issue.body)
    issue.changed = asked.github.now()
    return Reply(200, issue.pull_json())


@routes.on("GET", "/repos/{owner}/{name}/pulls/{number}/files", PULLS, "read")
def _files(asked: Asked) -> Reply:
    pull = asked.pull().pull
    assert pull is not None
    name = asked.repository.full_name
    changed = asked.github.git.diff_files(name, pull.base, pull.sha)
    return asked.page([{"filename": path, "patch": patch} for path, patch in changed.items()])


@routes.on("GET", "/repos/{owner}/{name}/pulls/{number}/comments", PULLS, "read")
def _line_comments(asked: Asked) -> Reply:
    issue = asked.pull()
    assert issue.pull is not None
    shown = [comment.json(issue) for comment in issue.pull.comments]
    newest_first = asked.request.parameter("direction") == "desc"
    return asked.page(shown[::-1] if newest_first else shown)


@routes.on("GET", "/repos/{owner}/{name}/pulls/{number}/reviews", PULLS, "read")
def _reviews(asked: Asked) -> Reply:
    issue = asked.pull()
    assert issue.pull is not None
    return asked.page([_shown(review, issue) for review in issue.pull.reviews])


@routes.on("GET", "/repos/{owner}/{name}/pulls/{number}/reviews/{id}", PULLS, "read")
def _review(asked: Asked) -> Reply:
    issue = asked.pull()
    assert issue.pull is not None
    for review in issue.pull.reviews:
        if str(review.id) == asked.part("id"):
            return Reply(200, _shown(review, issue))
    raise not_found()


@routes.on("POST", "/repos/{owner}/{name}/pulls/{number}/comments/{id}/replies", PULLS, "write")
def _reply(asked: Asked) -> Reply:
    issue = asked.pull()
    assert issue.pull is not None
    roots = [
        each
        for each in issue.pull.comments
        if str(each.id) == asked.part("id") and each.reply_to is None
    ]
    if not roots:
        raise not_found()
    words = [LineWords(roots[0].path, roots[0].line or 1, asked.words())]
    review = asked.github.add_review(
        issue, asked.app.bot, None, words, "commented", reply_to=roots[0].id
    )
    made = next(each for each in issue.pull.comments if each.review == review.id)
    return Reply(201, made.json(issue))


@routes.on("POST", "/repos/{owner}/{name}/pulls/{number}/reviews", PULLS, "write")
def _add_review(asked: Asked) -> Reply:
    issue, given = asked.pull(), asked.request.data
    state = STATES.get(str(given.get("event")))
    if state is None:
        raise invalid("PullRequestReview", "event", "is not a kind of review")
    if state != "commented" and issue.user is asked.app.bot:
        deed = "approve" if state == "approved" else "request changes on"
        raise unprocessable(f"Review Can not {deed} your own pull request")
    lines = [
        LineWords(each["path"], each["line"], each["body"], each.get("start_line"))
        for each in given.get("comments", ())
    ]
    said = str(given.get("body") or "").strip()
    needed = {"commented": bool(lines), "approved": True, "changes_requested": False}[state]
    if not (said or needed) or not all(each.words.strip() for each in lines):
        raise invalid("PullRequestReview", "body", "body can't be blank")
    commit = given.get("commit_id")
    if commit and not asked.github.is_part(issue, str(commit)):
        raise unprocessable("No commit found for the ref commit_id")
    review = asked.github.add_review(
        issue, asked.app.bot, given.get("body"), lines, state, commit=commit
    )
    return Reply(200, _shown(review, issue))


def _shown(review: Review, issue: Issue) -> dict[str, Any]:
    return review.json(issue) | {"state": review.state.upper()}


def _label(pull: Pull) -> str:
    return f"{pull.head_repository.owner.login}:{pull.head}"
