"""The simulated GitHub refuses what GitHub refuses, and serves real git."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import jwt
import pytest

from sim.github.state import App, Issue, Repository, Status, Token
from sim.github.world import SimulatedGithub

WRITE = {"contents": "write", "issues": "write", "pull_requests": "write", "metadata": "read"}


class Peer:
    """A program that calls the API, and a git client."""

    def __init__(self, github: SimulatedGithub) -> None:
        self.github = github
        self.repository: Repository = github.repository("acme/widgets", {"ann": "write"})
        self.other: Repository = github.repository("acme/secrets", private=True)
        self.app: App = github.app("bot", "http://127.0.0.1:9/hook")
        self.installation = github.install(self.app, self.repository)
        self.http = httpx.Client(trust_env=False, verify=False, timeout=30)

    def token(self, **permissions: str) -> Token:
        reach = {self.repository.id}
        return self.github.make_token(self.installation, reach, permissions or WRITE, 3600)

    def call(self, method: str, path: str, secret: str = "", **data: Any) -> httpx.Response:
        headers = {"authorization": f"Bearer {secret}"} if secret else {}
        url = self.github.api_url + path
        return self.http.request(method, url, headers=headers, json=data or None)

    def signed(self, **changed: Any) -> str:
        now = int(time.time())
        claims = {"iss": str(self.app.id), "iat": now - 60, "exp": now + 300, **changed}
        return jwt.encode(claims, self.app.private_pem, algorithm="RS256")

    def issue(self) -> Issue:
        return self.github.open_issue("ann", self.repository, "Bug")

    def git(self, folder: Path, *arguments: str, token: Token | None = None) -> int:
        url = self.github.url
        if token is not None:
            url = url.replace("//", f"//x-access-token:{token.value}@")
        done = subprocess.run(
            ["git", *(each.replace("URL", url) for each in arguments)],
            cwd=folder,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(folder),
                "GIT_TERMINAL_PROMPT": "0",
                "GIT_CONFIG_NOSYSTEM": "1",
            },
            capture_output=True,
            check=False,
            timeout=60,
        )
        return done.returncode


@pytest.fixture
def peer(tmp_path: Path) -> Iterator[Peer]:
    with SimulatedGithub(tmp_path / "github") as github:
        made = Peer(github)
        yield made
        made.http.close()


def test_an_app_signs_in_with_a_fresh_token_of_its_own_key(peer: Peer) -> None:
    now = int(time.time())

    assert peer.call("GET", "/app", peer.signed()).json()["slug"] == "bot"
    assert peer.call("GET", "/app").status_code == 401
    assert peer.call("GET", "/app", peer.signed(exp=now + 900)).status_code == 401
    assert peer.call("GET", "/app", peer.signed(exp=now - 1)).status_code == 401
    assert peer.call("GET", "/app", peer.signed(iat=now + 300)).status_code == 401
    assert peer.call("GET", "/app", peer.signed(iss="999999")).status_code == 404
    assert peer.call("GET", "/app", peer.signed()[:-8] + "AAAAAAAA").status_code == 401


def test_a_token_does_what_it_was_made_for_and_no_more(peer: Peer) -> None:
    issue = peer.issue()
    comments = f"/repos/acme/widgets/issues/{issue.number}/comments"
    reading = peer.token(issues="read").value

    assert peer.call("GET", comments, reading).status_code == 200
    assert peer.call("POST", comments, reading, body="x").status_code == 403
    assert peer.call("GET", "/repos/acme/secrets/issues/1", reading).status_code == 404
    assert peer.call("GET", comments, "ghs_guessed").status_code == 401
    asked = {"repositories": ["secrets"], "permissions": {"issues": "read"}}
    path = f"/app/installations/{peer.installation.id}/access_tokens"
    assert peer.call("POST", path, peer.signed(), **asked).status_code == 422
    asked = {"repositories": ["widgets"], "permissions": {"administration": "write"}}
    assert peer.call("POST", path, peer.signed(), **asked).status_code == 422


def test_a_commit_is_as_good_as_the_latest_word_of_each_service(peer: Peer) -> None:
    peer.github.git.commit("acme/widgets", "topic", {"a.txt": "a"}, "Change")
    pull = peer.github.open_pull("ann", peer.repository, "A change", "topic")
    assert pull.pull is not None
    path = f"/repos/acme/widgets/commits/{pull.pull.sha}/status"
    token = peer.token(statuses="read").value
    states = [peer.call("GET", path, token).json()["state"]]

    for context, state in (("ci", "error"), ("ci", "success"), ("review", "pending")):
        peer.github.report(pull, Status(context, state))
        states.append(peer.call("GET", path, token).json()["state"])

    assert states == ["pending", "failure", "success", "pending"]
    shown = peer.call("GET", path, token).json()
    assert [each["context"] for each in shown["statuses"]] == ["ci", "review"]
    assert peer.call("GET", path, peer.token().value).status_code == 403


def test_a_comment_that_is_too_long_or_too_much_is_refused(peer: Peer) -> None:
    comments = f"/repos/acme/widgets/issues/{peer.issue().number}/comments"
    token = peer.token().value

    assert peer.call("POST", comments, token, body="x" * 65_537).status_code == 422
    statuses = [peer.call("POST", comments, token, body="x").status_code for _ in range(80)]
    limited = peer.call("POST", comments, token, body="x")

    assert statuses == [201] * 79 + [403]
    assert limited.status_code == 403
    assert limited.headers["retry-after"] == "60"


def test_git_wants_a_token_for_the_repository_and_the_right_to_write(
    peer: Peer, tmp_path: Path
) -> None:
    reading, writing = peer.token(contents="read"), peer.token()
    clone, push = (
        ("clone", "-q", "URL/acme/widgets.git", "work"),
        ("push", "-q", "URL/acme/widgets"),
    )

    assert peer.git(tmp_path, "clone", "-q", "URL/acme/secrets.git", "no") != 0
    assert peer.git(tmp_path, *clone, token=reading) == 0
    work = tmp_path / "work"
    (work / "new.txt").write_text("new\n")
    who = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    assert peer.git(work, "add", ".") == 0
    assert peer.git(work, *who, "commit", "-q", "-m", "New") == 0
    assert peer.git(work, *push, "HEAD:topic") != 0
    assert peer.git(work, *push, "HEAD:topic", token=reading) != 0
    assert peer.git(work, *push, "HEAD:topic", token=writing) == 0
    assert peer.github.git.resolve("acme/widgets", "topic")


def test_pull_requests_want_commits_and_comments_want_lines_of_the_diff(peer: Peer) -> None:
    token, pulls = peer.token().value, "/repos/acme/widgets/pulls"
    asked = {"title": "A", "head": "topic", "base": "main"}

    assert peer.call("POST", pulls, token, **asked).status_code == 422
    peer.github.git.commit("acme/widgets", "topic", {"a.py": "one\n"}, "Change")
    assert peer.call("POST", pulls, token, **asked).status_code == 201
    assert peer.call("POST", pulls, token, **asked).status_code == 422
    review = {"event": "COMMENT", "comments": [{"path": "a.py", "line": 9, "body": "x"}]}
    assert peer.call("POST", f"{pulls}/1/reviews", token, **review).status_code == 422
    review["comments"] = [{"path": "a.py", "start_line": 9, "line": 1, "body": "x"}]
    assert peer.call("POST", f"{pulls}/1/reviews", token, **review).status_code == 422
    review["comments"] = [{"path": "a.py", "line": 1, "body": " "}]
    assert peer.call("POST", f"{pulls}/1/reviews", token, **review).status_code == 422
    assert peer.call("POST", f"{pulls}/1/reviews", token, event="COMMENT").status_code == 422
    review["comments"] = [{"path": "a.py", "line": 1, "body": "x"}]
    assert peer.call("POST", f"{pulls}/1/reviews", token, **review).status_code == 200


def test_a_push_to_the_branch_of_a_pull_request_is_told(peer: Peer, tmp_path: Path) -> None:
    peer.github.git.commit("acme/widgets", "topic", {"a.py": "one\n"}, "Change")
    pull = peer.github.open_pull("ann", peer.repository, "A change", "topic")
    peer.github.hooks.held = []

    peer.git(tmp_path, "clone", "-q", "-b", "topic", "URL/acme/widgets", "work", token=peer.token())
    who = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    peer.git(tmp_path / "work", *who, "commit", "-q", "--allow-empty", "-m", "More")
    peer.git(tmp_path / "work", "push", "-q", "URL/acme/widgets", "HEAD:topic", token=peer.token())

    pushed, event = peer.github.hooks.held
    assert (pushed.kind, pushed.payload["ref"]) == ("push", "refs/heads/topic")
    assert event.payload["action"] == "synchronize"
    assert pull.pull is not None
    assert event.payload["pull_request"]["head"]["sha"] == pull.pull.sha


def push_file(peer: Peer, folder: Path, path: str, token: Token) -> str:
    """Commit a file on a new branch and push it; returns what git says if it is refused."""
    work = folder / uuid4().hex
    assert peer.git(folder, "clone", "-q", "URL/acme/widgets.git", str(work)) == 0
    (work / path).parent.mkdir(parents=True, exist_ok=True)
    (work / path).write_text("on\n")
    who = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    assert peer.git(work, "add", ".") == 0
    assert peer.git(work, *who, "commit", "-qm", "x") == 0
    url = f"{peer.github.url}/acme/widgets".replace("//", f"//x-access-token:{token.value}@")
    done = subprocess.run(
        ["git", "push", "-q", url, f"HEAD:refs/heads/{work.name}"],
        cwd=work,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.stderr if done.returncode else ""


def test_workflow_files_are_taken_only_with_the_permission_or_if_a_branch_has_them(
    peer: Peer, tmp_path: Path
) -> None:
    path = ".github/workflows/ci.yml"
    narrow, wide = peer.token(), peer.token(**WRITE, workflows="write")

    refused = push_file(peer, tmp_path, path, narrow)

    assert f"refusing to allow a GitHub App to create or update workflow `{path}`" in refused
    assert "without `workflows` permission" in refused
    assert push_file(peer, tmp_path, path, wide) == ""
    assert push_file(peer, tmp_path, path, narrow) == ""


def test_where_a_rule_wants_signed_commits_unsigned_ones_are_refused(
    peer: Peer, tmp_path: Path
) -> None:
    peer.repository.signed = True

    assert "Commits must have verified signatures" in push_file(
        peer, tmp_path, "a.txt", peer.token()
    )


def test_a_completed_check_stays_so_and_only_then_has_buttons(peer: Peer) -> None:
    sha = peer.github.git.resolve("acme/widgets", "main")
    token = peer.token(checks="write").value
    stop = {"label": "Stop", "description": "Stop it", "identifier": "stop"}
    path = "/repos/acme/widgets/check-runs"
    working = {"status": "in_progress", "actions": [stop]}

    made = peer.call("POST", path, token, name="bot", head_sha=sha, **working).json()
    (run,) = peer.repository.checks
    assert run.buttons == []
    done = {"status": "completed", "conclusion": "neutral", "actions": [stop]}
    peer.call("PATCH", f"{path}/{made['id']}", token, **done)
    assert run.buttons == [stop]
    again = peer.call("PATCH", f"{path}/{made['id']}", token, **working)

    assert (again.status_code, run.status, run.conclusion) == (200, "completed", "neutral")


def test_a_suite_is_queued_until_a_new_run_is_completed(peer: Peer) -> None:
    sha = peer.github.git.resolve("acme/widgets", "main")
    token, path = peer.token(checks="write").value, "/repos/acme/widgets/check-runs"
    done = {"status": "completed", "conclusion": "neutral"}
    old = peer.call("POST", path, token, name="bot", head_sha=sha, **done).json()

    peer.github.rerun_all("ann", peer.repository, peer.app, sha)
    peer.call("PATCH", f"{path}/{old['id']}", token, **done)
    assert len(peer.repository.suites) == 1
    peer.call("POST", path, token, name="bot", head_sha=sha, **done)

    assert peer.repository.suites == {}


def test_people_are_told_of_new_comments_and_never_of_edits(peer: Peer) -> None:
    peer.github.account("bob")
    issue, token = peer.issue(), peer.token().value
    path = "/repos/acme/widgets/issues"

    made = peer.call("POST", f"{path}/{issue.number}/comments", token, body="Hi @bob `@cleo`")
    peer.call("PATCH", f"{path}/comments/{made.json()['id']}", token, body="@ann, @bob: done")
    peer.github.comment("ann", issue, "Thanks.")

    told = [(each.login, each.reason) for each in peer.github.notifications]
    assert told == [("ann", "subscribed"), ("bob", "mention"), ("bob", "subscribed")]
