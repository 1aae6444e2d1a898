"""The git server behind the simulated GitHub: bare repositories, served by git's own backend."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Collection, Iterator, Mapping
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
COMMITTER = "Somebody <somebody@github.example>"
CONFIG = """\
[core]
	repositoryformatversion = 0
	bare = true
[http]
	receivepack = true
"""
PROTECTION = """\
#!/bin/sh
case "$PROTECTED" in *"[$1]"*)
  echo "error: GH006: Protected branch update failed for $1." >&2
  echo "error: Changes must be made through a pull request." >&2
  exit 1
esac
if [ -z "$MAY_CHANGE_WORKFLOWS" ]; then
  listed=$(git ls-tree -r --format='%(objectname) %(path)' "$3" -- .github/workflows/)
  refused=$(echo "$listed" | while read -r blob path; do
    [ -n "$path" ] || continue
    for tip in $(git for-each-ref --format='%(objectname)' refs/heads); do
      [ "$(git rev-parse -q --verify "$tip:$path")" = "$blob" ] && continue 2
    done
    echo "$path"
    break
  done)
  if [ -n "$refused" ]; then
    printf 'refusing to allow a GitHub App to create or update workflow `%s` ' "$refused" >&2
    echo 'without `workflows` permission' >&2
    exit 1
  fi
fi
if [ -n "$SIGNED" ]; then
  for commit in $(git rev-list "$3" --not --all); do
    git cat-file commit "$commit" | grep -q '^gpgsig' && continue
    echo "error: GH013: Repository rule violations found for $1." >&2
    echo "- Commits must have verified signatures." >&2
    echo "  Found 1 violation:" >&2
    echo "  $commit" >&2
    exit 1
  done
fi
"""
"""The hook that refuses a push as GitHub does."""
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
        for folder in ("objects", "refs"):
            (path / folder).mkdir(parents=True)
        (path / "HEAD").write_text("ref: refs/heads/main\n")
        (path / "config").write_text(CONFIG)
        self._protect(name)
        self._import(name, "main", files, "Begin")

    def fork(self, name: str, copy: str) -> None:
        """Copy a repository."""
        target = self.path(copy)
        target.parent.mkdir(parents=True, exist_ok=True)
        self.git(name, "clone", "--quiet", "--bare", str(self.path(name)), str(target))
        (target / "config").write_text(CONFIG)
        self._protect(copy)

    def _protect(self, name: str) -> None:
        """Keep people from pushing to protected branches."""
        hook = self.path(name) / "hooks" / "update"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(PROTECTION)
        hook.chmod(0o755)

    def move(self, name: str, new: str) -> None:
        """Give a repository another name."""
        self.path(new).parent.mkdir(parents=True, exist_ok=True)
        self.path(name).rename(self.path(new))

    def commit(self, name: str, branch: str, files: Mapping[str, str], message: str) -> str:
        """Add a commit to a branch, which begins at main if it is new."""
        start = branch if self.resolve(name, branch) else "main"
        return self._import(name, branch, files, message, f"from refs/heads/{start}^0\n")

    def _import(
        self, name: str, branch: str, files: Mapping[str, str], message: str, start: str = ""
    ) -> str:
        """Commit files in one git process; returns the commit."""
        stream = [
            f"commit refs/heads/{branch}\nmark :1\ncommitter {COMMITTER} now\n",
            _data(f"{message}\n"),
            start,
            *(f"M 100644 inline {file}\n{_data(text)}" for file, text in files.items()),
            "get-mark :1\n",
        ]
        options = ("--quiet", "--date-format=now", "--cat-blob-fd=1")
        return self.git(name, "fast-import", *options, text="".join(stream))

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

    def has_ancestor(self, name: str, commit: str, ancestor: str) -> bool:
        """Tell whether a commit comes after another one, or is the same."""
        try:
            self.git(name, "merge-base", "--is-ancestor", ancestor, commit)
        except subprocess.CalledProcessError:
            return False
        return True

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
        self,
        method: str,
        path: str,
        query: str,
        headers: Mapping[str, str],
        body: bytes,
        *,
        protected: Collection[str] = (),
        signed: bool = False,
        may_change_workflows: bool = False,
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
            "PROTECTED": "".join(f"[refs/heads/{branch}]" for branch in protected),
            "SIGNED": "yes" if signed else "",
            "MAY_CHANGE_WORKFLOWS": "yes" if may_change_workflows else "",
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


def _data(text: str) -> str:
    """Write a text for git's fast-import."""
    return f"data {len(text.encode())}\n{text}\n"


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
