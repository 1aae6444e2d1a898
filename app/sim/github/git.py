"""The git server behind the simulated GitHub: bare repositories, served by git's own backend."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

GIT_SECONDS = 60.0
"""How long one git command may take; the repositories are tiny."""
ENVIRONMENT = {
    "PATH": os.defpath,
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Somebody",
    "GIT_AUTHOR_EMAIL": "somebody@github.example",
    "GIT_COMMITTER_NAME": "Somebody",
    "GIT_COMMITTER_EMAIL": "somebody@github.example",
}
_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")


@dataclass(frozen=True)
class Answer:
    """What git's backend says to a request."""

    status: int
    headers: dict[str, str]
    body: bytes


class GitFolder:
    """All bare repositories, below one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, name: str) -> Path:
        """Tell where a repository is."""
        return self.folder / f"{name}.git"

    def make(self, name: str, files: Mapping[str, str]) -> None:
        """Make a repository with one commit on main."""
        path = self.path(name)
        path.mkdir(parents=True)
        self.git(name, "init", "--quiet", "--bare", "--initial-branch=main")
        self.git(name, "config", "http.receivepack", "true")
        self.commit(name, "main", files, "Begin")

    def fork(self, name: str, copy: str) -> None:
        """Copy a repository."""
        target = self.path(copy)
        target.parent.mkdir(parents=True, exist_ok=True)
        self.git(name, "clone", "--quiet", "--bare", str(self.path(name)), str(target))
        self.git(copy, "config", "http.receivepack", "true")

    def move(self, name: str, new: str) -> None:
        """Give a repository another name."""
        self.path(new).parent.mkdir(parents=True, exist_ok=True)
        self.path(name).rename(self.path(new))

    def commit(self, name: str, branch: str, files: Mapping[str, str], message: str) -> str:
        """Add a commit to a branch, which begins at main if it is new."""
        parent = self.resolve(name, branch) or self.resolve(name, "main")
        index = {"GIT_INDEX_FILE": str(self.path(name) / "simulated-index")}
        if parent:
            self.git(name, "read-tree", parent, extra=index)
        for file, text in files.items():
            blob = self.git(name, "hash-object", "-w", "--stdin", text=text)
            self.git(
                name, "update-index", "--add", "--cacheinfo", f"100644,{blob},{file}", extra=index
            )
        tree = self.git(name, "write-tree", extra=index)
        parents = ["-p", parent] if parent else []
        commit = self.git(name, "commit-tree", tree, *parents, "-m", message)
        self.git(name, "update-ref", f"refs/heads/{branch}", commit)
        return commit

    def merge(self, name: str, branch: str, commit: str) -> None:
        """Merge a commit into a branch."""
        ref = f"refs/heads/{branch}"
        tree = self.git(name, "merge-tree", "--write-tree", ref, commit)
        parents = ("-p", ref, "-p", commit)
        merged = self.git(name, "commit-tree", tree, *parents, "-m", "Merge")
        self.git(name, "update-ref", ref, merged)

    def resolve(self, name: str, branch: str) -> str:
        """Find the commit of a branch; empty if there is none."""
        try:
            return self.git(name, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}")
        except subprocess.CalledProcessError:
            return ""

    def branches(self, name: str, *, holding: str = "") -> dict[str, str]:
        """List branches and their commits, all or those that hold a commit."""
        which = [f"--contains={holding}"] if holding else []
        shown = self.git(
            name, "for-each-ref", "--format=%(refname:short) %(objectname)", *which, "refs/heads"
        )
        return dict(line.split(" ") for line in shown.splitlines())

    def point(self, name: str, ref: str, source: str, commit: str) -> None:
        """Make a ref, with objects that may come from a fork."""
        self.git(name, "fetch", "--quiet", str(self.path(source)), commit)
        self.git(name, "update-ref", ref, commit)

    def diff_lines(self, name: str, base: str, commit: str, path: str) -> dict[int, str]:
        """List the lines that a diff shows of a file, with the hunk each stands in."""
        shown = self.git(name, "diff", f"refs/heads/{base}...{commit}", "--", path)
        return dict(_lines(shown))

    def diff_files(self, name: str, base: str, commit: str) -> dict[str, str]:
        """List the files that a diff changes, with the hunks of each."""
        both = f"refs/heads/{base}...{commit}"
        paths = self.git(name, "diff", "--name-only", "-z", both).rstrip("\0").split("\0")
        shown = {path: self.git(name, "diff", both, "--", path) for path in filter(None, paths)}
        return {path: diff[max(0, diff.find("\n@@ ") + 1) :] for path, diff in shown.items()}

    def git(
        self, name: str, *arguments: str, text: str = "", extra: Mapping[str, str] | None = None
    ) -> str:
        """Run git in a repository."""
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.path(name) if self.path(name).exists() else self.folder,
            env={**ENVIRONMENT, **(extra or {})},
            input=text,
            capture_output=True,
            text=True,
            check=True,
            timeout=GIT_SECONDS,
        )
        return done.stdout.strip()

    def serve(
        self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes
    ) -> Answer:
        """Answer a request of a git client with git's own backend."""
        environment = {
            **ENVIRONMENT,
            "GIT_PROJECT_ROOT": str(self.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": method,
            "CONTENT_TYPE": headers.get("content-type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": headers.get("content-encoding", ""),
            "GIT_PROTOCOL": headers.get("git-protocol", ""),
            "REMOTE_USER": "x-access-token",
        }
        done = subprocess.run(
            ["git", "http-backend"],
            env=environment,
            input=body,
            capture_output=True,
            check=True,
            timeout=GIT_SECONDS,
        )
        head, _, rest = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if line)
        status = int(fields.pop("Status", "200").split(" ")[0])
        return Answer(status, fields, rest)


def _lines(diff: str) -> Iterator[tuple[int, str]]:
    """List the lines of the new side of a diff with their numbers."""
    hunk: list[str] = []
    line = 0
    for text in diff.splitlines():
        if begins := _HUNK.match(text):
            hunk, line = [text], int(begins[1])
        elif hunk:
            hunk.append(text)
            if not text.startswith("-"):
                yield line, "\n".join(hunk)
                line += 1
