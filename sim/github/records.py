"""All that is on the simulated GitHub, and what happens when something is done to it."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from sim.github.answers import invalid
from sim.github.assets import Assets
from sim.github.git import GitFolder
from sim.github.hooks import Event, Hooks
from sim.github.notices import Notification, notify
from sim.github.state import (
    Account,
    App,
    Comment,
    Installation,
    Issue,
    Pull,
    Repository,
    Review,
    Token,
)

PERMISSIONS = {
    "metadata": "read",
    "contents": "write",
    "issues": "write",
    "pull_requests": "write",
    "checks": "write",
    "statuses": "read",
    "actions": "read",
}
EVENTS = (
    "issues",
    "issue_comment",
    "pull_request",
    "pull_request_review",
    "pull_request_review_comment",
    "check_suite",
    "check_run",
    "status",
    "push",
    "repository",
)


class LineWords(NamedTuple):
    """A comment on a line of a diff, or on several of one hunk."""

    path: str
    line: int
    words: str
    first: int | None = None


class Records:
    """What there is and what happens; whoever is told of it is told by webhooks."""

    def __init__(self, folder: Path, now: Callable[[], float]) -> None:
        self.now = now
        self.changed = threading.Condition(threading.RLock())
        self.git = GitFolder(folder)
        self.hooks = Hooks(now, self.changed)
        self.assets = Assets(now)
        self.accounts: dict[str, Account] = {}
        self.apps: dict[int, App] = {}
        self.installations: list[Installation] = []
        self.repositories: dict[str, Repository] = {}
        self.by_id: dict[int, Repository] = {}
        self.moved: dict[str, str] = {}
        self.tokens: dict[str, Token] = {}
        self.notifications: list[Notification] = []
        self.codes: dict[str, App] = {}
        """Apps that were made of a manifest and not fetched yet."""
        self.api_url = ""
        """Where the API is, once somebody listens there."""

    # Who and what there is.

    def account(self, login: str, kind: str = "User") -> Account:
        """Find an account, or make it."""
        return self.accounts.setdefault(login.lower(), Account(login, kind))

    def repository(
        self,
        full_name: str,
        people: Mapping[str, str] | None = None,
        *,
        private: bool = False,
        files: Mapping[str, str] | None = None,
    ) -> Repository:
        """Make a repository with one commit, and say who may do what in it."""
        owner, _, name = full_name.partition("/")
        made = Repository(self.account(owner, "Organization"), name, private, pushed=self.now())
        made.people = {
            self.account(login).login.lower(): role for login, role in (people or {}).items()
        }
        self._keep(made)
        self.git.make(full_name, files or {"README.md": "# A project\n\nOne.\nTwo.\nThree.\n"})
        return made

    def fork(self, repository: Repository, login: str) -> Repository:
        """Copy a repository to somebody's account."""
        made = Repository(self.account(login), repository.name, forked_from=repository)
        made.people = {login.lower(): "admin"}
        self._keep(made)
        self.git.fork(repository.full_name, made.full_name)
        return made

    def app(
        self,
        slug: str,
        hook_url: str,
        *,
        owner: str = "acme",
        permissions: Mapping[str, str] = PERMISSIONS,
        events: Sequence[str] = EVENTS,
    ) -> App:
        """Register an App, with a key of its own."""
        private, public = _key(len(self.apps))
        made = App(
            slug,
            secrets.token_hex(20),
            hook_url,
            private,
            public,
            self.account(owner),
            dict(permissions),
            tuple(events),
        )
        self.apps[made.id] = made
        self.accounts[made.bot.login.lower()] = made.bot
        return made

    def propose(self, manifest: Mapping[str, Any], slug: str) -> str:
        """Make an App of a manifest, as a click on GitHub does; returns the code to fetch it by."""
        app = self.app(
            slug,
            manifest["hook_attributes"]["url"],
            permissions=manifest["default_permissions"],
            events=manifest["default_events"],
        )
        code = secrets.token_hex(20)
        self.codes[code] = app
        return code

    def install(self, app: App, *repositories: Repository) -> Installation:
        """Install an App on some repositories of one owner; a private one only on its owner's."""
        if not app.public and repositories[0].owner is not app.owner:
            raise PermissionError(f"{app.slug} is private to {app.owner.login}")
        made = Installation(app, repositories[0].owner, {each.id for each in repositories})
        self.installations.append(made)
        return made

    def make_token(
        self,
        installation: Installation,
        reach: set[int],
        permissions: dict[str, str],
        seconds: float,
    ) -> Token:
        """Give out a token."""
        value = f"ghs_{secrets.token_hex(18)}"
        made = Token(value, installation, reach, permissions, self.now() + seconds)
        self.tokens[value] = made
        return made

    def rename_account(self, old: str, new: str) -> Account:
        """Give an account another login; anybody can have the old one then."""
        with self.changed:
            account = self.accounts.pop(old.lower())
            owned = {
                name: each for name, each in self.repositories.items() if each.owner is account
            }
            before = {name: each.full_name for name, each in owned.items()}
            account.login, self.accounts[new.lower()] = new, account
            for name, repository in owned.items():
                del self.repositories[name]
                self.repositories[repository.full_name.lower()] = repository
                self.moved[name] = repository.full_name.lower()
                self.git.move(before[name], repository.full_name)
            for repository in self.repositories.values():
                if (level := repository.people.pop(old.lower(), None)) is not None:
                    repository.people[new.lower()] = level
            return account

    def rename(self, repository: Repository, owner: str, name: str) -> None:
        """Give a repository another name or another owner; the old one leads there."""
        with self.changed:
            old = repository.full_name
            del self.repositories[old.lower()]
            repository.owner, repository.name = self.account(owner, "Organization"), name
            self.repositories[repository.full_name.lower()] = repository
            self.moved[old.lower()] = repository.full_name.lower()
            self.git.move(old, repository.full_name)
            was, _, called = old.partition("/")
            action = "renamed" if was == owner else "transferred"
            changes: dict[str, Any] = {"repository": {"name": {"from": called}}}
            if action == "transferred":
                changes = {"owner": {"from": {"user": self.account(was).json()}}}
            self.emit("repository", action, repository, repository.owner, {"changes": changes})

    # What happens then.

    def add_comment(self, issue: Issue, user: Account, body: str, app: App | None) -> Comment:
        """Keep a comment and tell everybody."""
        with self.changed:
            comment = Comment(user, body, self.now(), app=app)
            issue.comments.append(comment)
            issue.changed = comment.at
            self._notify(issue, user, body)
            parts = {"issue": issue.json(), "comment": comment.json(issue)}
            self.emit("issue_comment", "created", issue.repository, user, parts)
            self.changed.notify_all()
        return comment

    def change_comment(self, issue: Issue, comment: Comment, by: Account, body: str) -> None:
        """Change a comment and tell everybody."""
        with self.changed:
            parts: dict[str, Any] = {"changes": {"body": {"from": comment.body}}}
            comment.history.append(comment.body)
            comment.body, comment.changed = body, self.now()
            comment.edits += 1
            kind = "issue_comment"
            parts |= {"issue": issue.json(), "comment": comment.json(issue)}
            if comment.path:
                kind = "pull_request_review_comment"
                parts["pull_request"] = issue.pull_json()
                del parts["issue"]
            self.emit(kind, "edited", issue.repository, by, parts)
            self.changed.notify_all()

    def remove_comment(self, issue: Issue, comment: Comment, by: Account) -> None:
        """Take a comment away and tell everybody; a review of which nothing is left goes too."""
        pull = issue.pull
        with self.changed:
            if pull is None or comment not in pull.comments:
                issue.comments.remove(comment)
                kind, parts = "issue_comment", {"issue": issue.json()}
            else:
                pull.comments.remove(comment)
                kind, parts = "pull_request_review_comment", {"pull_request": issue.pull_json()}
                kept = {each.review for each in pull.comments}
                empty = comment.review if comment.review not in kept else None
                pull.reviews = [e for e in pull.reviews if e.body or e.id != empty]
            parts["comment"] = comment.json(issue)
            self.emit(kind, "deleted", issue.repository, by, parts)

    def add_pull(
        self, repository: Repository, user: Account, title: str, body: Any, head: str, base: str
    ) -> Issue:
        """Open a pull request, if there is anything to pull and none is open."""
        owner, _, branch = head.rpartition(":")
        home = self.repositories.get(f"{owner}/{repository.name}".lower(), repository)
        sha = self.git.resolve(home.full_name, branch)
        with self.changed:
            if not sha or not self.git.resolve(repository.full_name, base):
                raise invalid("PullRequest", "head" if not sha else "base", "is invalid")
            for issue in repository.issues.values():
                pull = issue.pull
                same = pull and (pull.head_repository, pull.head) == (home, branch)
                if same and issue.state == "open":
                    label = f"{home.owner.login}:{branch}"
                    raise invalid(
                        "PullRequest", "head", f"A pull request already exists for {label}."
                    )
            if sha == self.git.resolve(repository.full_name, base):
                raise invalid("PullRequest", "head", f"No commits between {base} and {branch}")
            issue = self._new_issue(repository, user, title, body)
            issue.pull = Pull(branch, base, home, sha)
            ref = f"refs/pull/{issue.number}/head"
            self.git.point(repository.full_name, ref, home.full_name, sha)
            self.emit("pull_request", "opened", repository, user, self._shown(issue)[1])
            self.changed.notify_all()
        return issue

    def add_review(
        self,
        issue: Issue,
        user: Account,
        body: str | None,
        lines: Sequence[LineWords],
        state: str,
        *,
        reply_to: int | None = None,
        commit: str | None = None,
    ) -> Review:
        """Keep a review with its comments, if they lie on the diff, and tell everybody."""
        pull, repository = issue.pull, issue.repository
        assert pull is not None
        with self.changed:
            reviewed = commit or pull.sha
            review = Review(user, body, state, self.now(), reviewed)
            comments: list[Comment] = []
            for path, line, words, first in lines:
                shown = self.git.diff_lines(repository.full_name, pull.base, reviewed, path)
                hunks = {shown.get(each, "").partition("\n")[0] for each in (line, first or line)}
                if hunks & {""} or len(hunks) > 1:
                    raise invalid(
                        "PullRequestReview",
                        "line",
                        "pull_request_review_thread.line must be part of the diff",
                    )
                comments.append(
                    Comment(
                        user,
                        words,
                        self.now(),
                        path=path,
                        line=line,
                        start_line=first,
                        hunk=shown[line],
                        review=review.id,
                        reply_to=reply_to,
                        commit=reviewed,
                    )
                )
            pull.reviews.append(review)
            pull.comments += comments
            self._notify(issue, user, "\n".join((body or "", *(each.body for each in comments))))
            about = {"pull_request": issue.pull_json()}
            parts = about | {"review": review.json(issue)}
            self.emit("pull_request_review", "submitted", repository, user, parts)
            for comment in comments:
                parts = about | {"comment": comment.json(issue)}
                self.emit("pull_request_review_comment", "created", repository, user, parts)
            self.changed.notify_all()
        return review

    def is_part(self, issue: Issue, commit: str) -> bool:
        """Tell whether a commit belongs to a pull request."""
        assert issue.pull is not None
        return self.git.has_ancestor(issue.repository.full_name, issue.pull.sha, commit)

    def pushed(self, repository: Repository, before: dict[str, str], sender: Account) -> None:
        """Tell everybody about branches that moved, and pull requests with them."""
        after = self.git.branches(repository.full_name)
        with self.changed:
            repository.pushed = self.now() if after != before else repository.pushed
            for branch, sha in after.items():
                if sha != before.get(branch):
                    parts = {
                        "ref": f"refs/heads/{branch}",
                        "before": before.get(branch, "0" * 40),
                        "after": sha,
                        "deleted": False,
                    }
                    self.emit("push", "", repository, sender, parts)
            for home in self.repositories.values():
                for issue in home.issues.values():
                    pull = issue.pull
                    if pull is None or pull.head_repository is not repository:
                        continue
                    sha = after.get(pull.head, "")
                    if sha and sha != before.get(pull.head) and issue.state == "open":
                        pull.sha, issue.changed = sha, self.now()
                        ref = f"refs/pull/{issue.number}/head"
                        self.git.point(home.full_name, ref, repository.full_name, sha)
                        parts = self._shown(issue)[1]
                        self.emit("pull_request", "synchronize", home, issue.user, parts)
            self.changed.notify_all()

    def emit(
        self, kind: str, action: str, repository: Repository, sender: Account, parts: dict[str, Any]
    ) -> None:
        """Tell every App that is installed there and listens to such events."""
        payload = {
            **({"action": action} if action else {}),
            **parts,
            "repository": repository.json(),
            "sender": sender.json(),
        }
        guid: str | None = None
        for installation in self.installations:
            app = installation.app
            if repository.id not in installation.repositories or kind not in app.events:
                continue
            event = Event(app, kind, payload | {"installation": {"id": installation.id}})
            event.guid = guid = guid or event.guid  # one event has one id, whoever hears of it
            self.hooks.emit(event)

    def later(self, work: Callable[[], object]) -> None:
        """Do something after the answer to a call."""
        threading.Thread(target=work, daemon=True).start()

    def _keep(self, repository: Repository) -> None:
        self.repositories[repository.full_name.lower()] = repository
        self.by_id[repository.id] = repository

    def _new_issue(self, repository: Repository, user: Account, title: str, body: Any) -> Issue:
        number = len(repository.issues) + 1
        issue = Issue(repository, number, title, body, user, self.now())
        repository.issues[number] = issue
        self._notify(issue, user, body or "")
        return issue

    def _notify(self, issue: Issue, by: Account, words: str) -> None:
        self.notifications += notify(issue, by, words, self.accounts)

    def _shown(self, issue: Issue) -> tuple[str, dict[str, Any]]:
        if issue.pull is None:
            return "issues", {"issue": issue.json()}
        return "pull_request", {"pull_request": issue.pull_json()}


@cache
def _key(number: int) -> tuple[str, str]:
    """Make the key pair of the nth App; it takes a while, so stories share them."""
    del number
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return private.decode(), public.decode()
