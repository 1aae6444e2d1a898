"""Looks at a work tree with git, without any file that an agent can write but the work tree itself.

It is one stdlib file that imports nothing of the package and runs in the agent's isolation. Its
argument says in JSON where to look (`_Task`); it writes what it saw as one line of JSON.

Git gets a folder of its own for one look: the objects of the repository, and nothing else from it
unless the task says that agents cannot write there. So no configuration, index, hook, filter,
exclude or attribute of an agent decides what people see.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TYPE_CHECKING = False  # the name is enough for mypy
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TypedDict

    class _Task(TypedDict):
        folder: str
        form: list[str]
        """The options of every `git diff`."""
        most: int
        """The longest diff in bytes; of a longer one only names and counts are given."""
        scopes: list[tuple[str, str, str]]
        """Scope, first and last commit; an empty commit is `HEAD`, and an empty last one the work
        tree."""
        counts: bool
        """Whether names and counts are enough."""
        takes: list[str]
        """The files of the repository that count, as patterns: those that agents cannot write."""
        known: str
        """The commit whose ignore rules people know; empty for none."""
        began: int
        """What changed later, in nanoseconds, may be the agent's."""
        in_place: bool
        """Whether it is a person's folder, which may be a part of a repository or contain some."""


MOST_NAMED = 20
"""Names that people are told: enough to find the rest."""
MOST_ENTRIES = 200_000
"""Files and folders among which repositories are searched; that takes about a second."""
SEARCH_SECONDS = 10.0
WORDS = 300
"""How much of git's own words a person reads about a failure."""
EMPTY = {
    "sha1": "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "sha256": "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
"""The tree without files, with which a repository without commits is compared."""
COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
EXCLUDE = "info/exclude"
PROGRAMS = ("config", "config.worktree", "commondir", "hooks")
"""What in a repository makes git run programs."""


class ViewFailed(Exception):
    """Git could not do it; the words are its own."""


class _Repository:
    """The repository that a folder belongs to, found without git: its settings must not count."""

    def __init__(self, folder: Path, *, or_above: bool) -> None:
        for top in (folder, *(folder.parents if or_above else ())):
            own = top / ".git"
            if own.is_file() or (own / "HEAD").exists():
                break
        else:
            raise ViewFailed("not a git repository")
        self.top = top
        self.git = own if own.is_dir() else top / _first_line(own).removeprefix("gitdir:").strip()
        self.common = self.git / _first_line(self.git / "commondir")

    def read(self, *words: str) -> bytes:
        """Ask git about the repository itself, which may answer anything."""
        where = (f"--git-dir={self.git}", f"--work-tree={self.top}")
        return _run("git", *where, *words, folder=self.top)

    def find(self, *words: str) -> str:
        """Ask git for one word; empty if there is none."""
        try:
            return self.read(*words).decode(errors="replace").strip()
        except ViewFailed:
            return ""


class _View:
    """A git folder for one look at a work tree."""

    def __init__(self, task: _Task, path: Path) -> None:
        self.task, self.path = task, path
        self.repository = repository = _Repository(Path(task["folder"]), or_above=task["in_place"])
        objects = str((repository.common / "objects").resolve())
        if "\n" in objects:
            raise ViewFailed("the name of the folder has more than one line")
        head = repository.find("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        kind = repository.find("rev-parse", "--show-object-format")
        kind = kind if kind in EMPTY else "sha1"
        # A branch that names no commit yet is one thing, a repository that git cannot read another.
        if not COMMIT.fullmatch(head):
            repository.read("symbolic-ref", "HEAD")
            head = EMPTY[kind]
        self.head = head
        for folder in ("objects/info", "refs", "info"):
            (path / folder).mkdir(parents=True)
        (path / "objects/info/alternates").write_text(f"{objects}\n", errors="surrogateescape")
        (path / "HEAD").write_text("ref: refs/heads/none\n")
        (path / "config").write_text(
            f"[core]\n\trepositoryformatversion = 1\n\tbare = false\n[extensions]\n"
            f"\tobjectFormat = {kind}\n"
        )
        for pattern in task["takes"]:
            self._take(pattern)
        if not (path / "index").exists():
            # None is kept for the next look: a file that a process has mapped can change although
            # all that an index remembers of it stays the same, its time of change included.
            self.git("read-tree", head)
            self._leave_out_sparse()

    def _leave_out_sparse(self) -> None:
        """Do not miss the files that a sparse checkout leaves out; any other bit does not count."""
        listed = _names(self.repository.read("ls-files", "-t", "-z", "--full-name"))
        absent = [
            name[2:]
            for name in listed
            if name.startswith("S ") and not os.path.lexists(self.repository.top / name[2:])
        ]
        if absent:
            given = b"\0".join(map(os.fsencode, absent))
            where = self.repository.top
            self.git("update-index", "--skip-worktree", "-z", "--stdin", given=given, folder=where)

    def _take(self, pattern: str) -> None:
        """Copy files of the repository, each with its time: on that of the index git relies."""
        for origin in {self.repository.git, self.repository.common}:
            for file in filter(Path.is_file, origin.glob(pattern)):
                shutil.copy2(file, self.path / file.relative_to(origin))

    def git(
        self,
        *words: str,
        folder: Path | None = None,
        given: bytes = b"",
        most: int = 0,
        fine: Sequence[int] = (),
    ) -> bytes:
        """Run git on the work tree."""
        where = (f"--git-dir={self.path}", f"--work-tree={self.repository.top}")
        here = folder or Path(self.task["folder"])
        return _run("git", *where, *words, folder=here, given=given, most=most, fine=fine)

    def list_repositories(self) -> list[str]:
        """List the untracked folders that are repositories: git sees no files in them."""
        listed = _names(self.git("ls-files", "--others", "--exclude-standard", "-z"))
        return [name for name in listed if name.endswith("/")]

    def add_new_files(self, left_out: Sequence[str]) -> None:
        """Let the index of this look know the files that are not added yet."""
        paths = [".", *(f":(exclude,literal){name}" for name in left_out)]
        self.git(
            *("add", "--intent-to-add", "--all", "--ignore-errors", "--pathspec-from-file=-"),
            "--pathspec-file-nul",
            given=b"\0".join(map(os.fsencode, paths)),
            fine=(1,),  # some could not be read
        )

    def diff(self, scope: str, first: str, last: str) -> dict[str, str]:
        """Show one part of what changed."""
        what = [first or self.head, *([last] if last else [])]
        if last == "HEAD":
            what[1] = self.head

        def shown(*form: str) -> str:
            words = ("diff", *self.task["form"], *form, *what, "--", ".")
            return self.git(*words, most=self.task["most"]).decode(errors="replace")

        try:
            if not self.task["counts"]:
                return {"scope": scope, "text": shown("--unified=3")}
        except ViewFailed:
            pass  # what is too long to be shown is counted
        try:
            return {"scope": scope, "stat": shown("--numstat", "-z")}
        except ViewFailed as error:
            return {"scope": scope, "problem": str(error)}

    def hidden(self) -> list[dict[str, object]]:
        """List the ignore rules that people do not know, with what they hide."""
        found: dict[str, list[str]] = {}
        for source, name in self._ignored():
            found.setdefault(source, []).append(name)
        known = self._known([*found])
        said = [_said(each, names) for each, names in found.items() if each not in known]
        exclude = self.repository.common / EXCLUDE
        if EXCLUDE not in self.task["takes"] and _has_rules(exclude):
            said.append(_said(f".git/{EXCLUDE}", [], applied=False))
        return said

    def _ignored(self) -> Iterator[tuple[str, str]]:
        """Yield what is ignored, with the file of the rule that does so."""
        listed = self.git(
            *("status", "--porcelain", "-z", "--untracked-files=all", "--ignored=matching"),
            *("--no-renames", "--", "."),
        )
        ignored = [name for name in listed.split(b"\0") if name.startswith(b"!! ")]
        if not ignored:
            return
        top = os.fsencode(self.repository.top)
        rules = self.git(
            *("check-ignore", "--verbose", "-z", "--stdin"),
            given=b"\0".join(top + b"/" + name[3:] for name in ignored),
            fine=(1,),
        )
        words = [os.fsdecode(word) for word in rules.split(b"\0")]
        for source, name in zip(words[::4], words[3::4], strict=False):
            # The owner's own file has a whole path, the copy of theirs is in this view.
            if not source.startswith("/"):
                yield source, os.path.relpath(name, self.repository.top)

    def _known(self, sources: Sequence[str]) -> set[str]:
        """Tell which ignore files are as they were before the agent's work."""
        top, commit = self.repository.top, self.task["known"]
        old = {each for each in sources if not self._is_new(top / each)}
        if not (sources and commit):
            return old
        commit = self.head if commit == "HEAD" else commit
        paths = [f":(top,literal){each}" for each in sources]
        tracked = _names(
            self.git("ls-tree", "-r", "-z", "--full-tree", "--name-only", commit, "--", *sources)
        )
        words = ("diff", "--name-only", "--no-relative", "-z", commit, "--", *paths)
        return old | ({*tracked} - {*_names(self.git(*words))})

    def _is_new(self, file: Path) -> bool:
        try:
            return file.lstat().st_ctime_ns > self.task["began"]
        except OSError:
            return True


def look(task: _Task) -> dict[str, object]:
    """Tell what changed in a folder, and what may keep people from seeing it."""
    seen: dict[str, object] = {}
    if task["in_place"] and not task["counts"]:
        seen["repositories"], seen["unsearched"] = search(Path(task["folder"]), task["began"])
    if not task["scopes"]:
        return seen
    with tempfile.TemporaryDirectory() as folder:
        try:
            view = _View(task, Path(folder))
            inner = view.list_repositories()
            if not task["counts"]:
                seen["hidden"] = view.hidden()
            view.add_new_files(inner)
            seen["nested"] = inner[:MOST_NAMED]
            seen["diffs"] = [view.diff(*scope) for scope in task["scopes"]]
        except ViewFailed as error:
            words = str(error)
            seen["diffs"] = [{"scope": scope[0], "problem": words} for scope in task["scopes"]]
    return seen


def search(top: Path, began: int) -> tuple[list[str], bool]:
    """Find repositories inside a folder whose programs changed; tells whether some were left out.

    Git looks for a repository from the current folder upwards, so each of them decides which
    programs a person's git runs inside it, also one that looks like a bare repository.
    """
    found: list[str] = []
    entries, deadline, left_out = 0, time.monotonic() + SEARCH_SECONDS, False
    waiting = [top]
    while waiting:
        path = waiting.pop()
        try:
            with os.scandir(path) as listed:
                names = {each.name: each.is_dir(follow_symlinks=False) for each in listed}
        except OSError:  # it may not be read, or its path is too long
            left_out = True
            continue
        entries += len(names)
        if entries > MOST_ENTRIES or time.monotonic() > deadline:
            left_out = True
            break
        looks_bare = "HEAD" in names and ({"objects", "refs"} <= {*names} or "commondir" in names)
        inner = [path / ".git"] if ".git" in names else [path] if looks_bare else []
        if path != top and any(_has_new_programs(each, began) for each in inner):
            found.append(f"{path.relative_to(top)}/")
        if path == top or not looks_bare:
            inside = (name for name, is_folder in names.items() if is_folder and name != ".git")
            waiting += [path / name for name in inside]
    return sorted(found)[:MOST_NAMED], left_out


def _has_new_programs(git: Path, began: int) -> bool:
    """Tell whether what makes git run programs in a repository changed since the work began."""
    if not git.is_dir() or git.is_symlink():
        return git.lstat().st_ctime_ns > began
    hooks = git / "hooks"
    named = [git / each for each in PROGRAMS]
    named += hooks.iterdir() if hooks.is_dir() and not hooks.is_symlink() else ()
    return any(os.path.lexists(each) and each.lstat().st_ctime_ns > began for each in named)


def _said(source: str, names: Sequence[str], *, applied: bool = True) -> dict[str, object]:
    return {
        "source": source,
        "names": sorted(names)[:MOST_NAMED],
        "count": len(names),
        "applied": applied,
    }


def _has_rules(file: Path) -> bool:
    """Tell whether a file has ignore rules; git itself makes one with comments alone."""
    try:
        lines = file.read_bytes().splitlines()
    except OSError:
        return False
    return any(line.strip() and not line.startswith(b"#") for line in lines)


def _first_line(file: Path) -> str:
    return file.read_text(errors="surrogateescape").partition("\n")[0] if file.is_file() else ""


def _names(listed: bytes) -> list[str]:
    return [os.fsdecode(name) for name in listed.split(b"\0") if name]


def _run(
    *argv: str,
    folder: Path,
    given: bytes = b"",
    most: int = 0,
    fine: Sequence[int] = (),
) -> bytes:
    """Run a command and return what it wrote."""
    with tempfile.TemporaryFile() as words, tempfile.TemporaryFile() as entered:
        entered.write(given)
        entered.seek(0)
        with subprocess.Popen(
            argv, cwd=folder, stdin=entered, stdout=subprocess.PIPE, stderr=words
        ) as child:
            assert child.stdout is not None
            written = child.stdout.read(most + 1 if most else -1)
            if most and len(written) > most:
                child.kill()
                raise ViewFailed("it wrote too much")
        if child.returncode not in {0, *fine}:
            words.seek(0)
            said = words.read().decode(errors="replace").strip()
            raise ViewFailed(said[-WORDS:] or f"git ended with status {child.returncode}")
    return written


if __name__ == "__main__":
    sys.stdout.write(json.dumps(look(json.loads(sys.argv[1]))) + "\n")
