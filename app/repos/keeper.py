"""Saves the state of an agent's clone as one commit in a git bundle, and restores a clone from it.

It is one stdlib file that imports nothing of the package: a copy of it is in the door of the gate
and runs in the agent's isolation, in the clone. As `keeper.py save KNOWN BASE...` it writes one
line of JSON and then the bundle; no bundle if the state is still the known one. As `keeper.py
restore BUNDLE` it brings a new clone to the state.

The tree of the commit is the work tree, without what is ignored; its first parent has the index as
its tree, the others are the commits that branches and stashes name, and its message says which.
Files are read and written as they are: the git folder used for that is a temporary one whose
attributes switch every filter off.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

TYPE_CHECKING = False  # the name is enough for mypy
if TYPE_CHECKING:
    from collections.abc import Sequence

FILE_BYTES = 100 * 1024**2
"""A larger file is left out; forges refuse it, too."""
TOTAL_BYTES = 400 * 1024**2
"""What changed and untracked files may have together; the smallest are saved first."""
MOST_FILES = 50_000
MOST_TIPS = 200
"""The most branches and stashes."""
MOST_NAMED = 20
"""The most files that are named as left out."""
STATE = "refs/agent-bridge/state"
GIT = Path(".git")
SCRATCH = GIT / "agent-bridge"
ATTRIBUTES = "* -text !eol -ident -filter !working-tree-encoding\n"
"""In this file of a git folder they win over all others."""
UNFINISHED = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply")
ALONE = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_AUTHOR_NAME": "Agent Bridge",
    "GIT_AUTHOR_EMAIL": "agent-bridge@localhost",
    "GIT_AUTHOR_DATE": "@1 +0000",
    "GIT_COMMITTER_NAME": "Agent Bridge",
    "GIT_COMMITTER_EMAIL": "agent-bridge@localhost",
    # The same state is always the same commit.
    "GIT_COMMITTER_DATE": "@1 +0000",
}


def save(known: str, *bases: str) -> None:
    """Write the state of the clone in this folder; `bases` are commits that its remote has."""
    branches, remotes, head = _refs()
    commit = branches.get(head) or _try("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    head = head or _try("symbolic-ref", "--quiet", "HEAD")
    with _Scratch() as scratch:
        scratch.take_index()
        staged = scratch.attempt("write-tree", "--missing-ok")
        left_out = scratch.add_changes()
        is_changed = left_out is not None or not staged
        tree = scratch.git("write-tree", "--missing-ok") if is_changed else staged
        parents = [commit] if commit else []
        # Of an unfinished merge only the files are saved.
        index = scratch.commit(staged or f"{commit}^{{tree}}", parents, "index")
        stashes = _stashes()
        tips = [*branches.values(), *(each for each, _ in stashes)]
        state = {
            "head": head,
            "commit": commit,
            "branches": branches,
            "stashes": stashes,
            "unfinished": any((GIT / each).exists() for each in UNFINISHED),
            "left_out": left_out or [],
        }
        kept = scratch.commit(tree, [index, *dict.fromkeys(tips)], json.dumps(state))
        said = {"state": kept, "left_out": left_out or []}
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()
        if kept != known:
            scratch.bundle(kept, [*remotes, *_find({*bases}.difference(remotes))])


def restore(bundle: str) -> None:
    """Bring the clone in this folder to the state in a bundle; says in JSON what that was."""
    kept = _git("bundle", "unbundle", bundle).split()[0]
    message = _git("cat-file", "commit", kept).partition("\n\n")[2]
    state = json.loads(message)
    index = _git("rev-parse", "--verify", f"{kept}^1")
    if state["commit"]:
        _git("checkout", "--quiet", "--force", "--detach", state["commit"], "--")
    present, *_ = _refs()
    gone = present.keys() - state["branches"].keys()
    moved = [f"update {name} {commit}\n" for name, commit in state["branches"].items()]
    _git("update-ref", "--stdin", given="".join([*moved, *(f"delete {each}\n" for each in gone)]))
    if state["head"]:
        _git("symbolic-ref", "HEAD", state["head"])
    with _Scratch() as scratch:
        scratch.take_index()
        scratch.git("read-tree", "--reset", "-u", kept)
    _git("read-tree", "-m", index)
    for commit, words in reversed(state["stashes"]):
        _git("stash", "store", "-m", words, commit)
    said = {"left_out": state["left_out"], "unfinished": state["unfinished"]}
    sys.stdout.write(json.dumps(said) + "\n")


class _Scratch:
    """A git folder for one command: the files and objects of the clone, none of its settings."""

    def __enter__(self) -> _Scratch:
        self.__exit__()
        for folder in ("objects/info", "refs", "info"):
            (SCRATCH / folder).mkdir(parents=True)
        (SCRATCH / "HEAD").write_text("ref: refs/heads/none\n")
        (SCRATCH / "objects/info/alternates").write_text(f"{(GIT / 'objects').absolute()}\n")
        (SCRATCH / "info/attributes").write_text(ATTRIBUTES)
        for name in ("shallow", "info/exclude"):
            if (GIT / name).is_file():
                shutil.copyfile(GIT / name, SCRATCH / name)
        folders = {"GIT_DIR": str(SCRATCH.absolute()), "GIT_WORK_TREE": str(Path.cwd())}
        self._environment = ALONE | folders
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(SCRATCH, ignore_errors=True)

    def take_index(self) -> None:
        """Begin with the clone's index: it tells which files are unchanged."""
        if (GIT / "index").is_file():
            # With its age, by which git finds files that changed right after it was written.
            shutil.copy2(GIT / "index", SCRATCH / "index")

    def git(self, *arguments: str, given: str = "") -> str:
        return _git(*arguments, given=given, more=self._environment)

    def attempt(self, *arguments: str, given: str = "") -> str:
        return _try(*arguments, given=given, more=self._environment)

    def add_changes(self) -> list[str] | None:
        """Add what changed to the index, within limits; None if nothing did.

        Returns some names of what is left out.
        """
        listed = self.git("ls-files", "-z", "--modified", "--others", "--exclude-standard")
        names = [each for each in dict.fromkeys(listed.split("\0")) if each]
        if not names:
            return None
        sizes = sorted((_size(name), name) for name in names)
        left_out: list[str] = []
        total = count = 0
        for size, name in sizes:
            total, count = total + size, count + 1
            if size > FILE_BYTES or total > TOTAL_BYTES or count > MOST_FILES:
                left_out.append(name)
        paths = [":/", *(f":(top,exclude,literal){name}" for name in left_out)]
        # It fails if a file cannot be read, and has added the others by then.
        self.attempt(
            *("-c", "advice.addEmbeddedRepo=false", "add", "--all", "--ignore-errors"),
            *("--pathspec-from-file=-", "--pathspec-file-nul"),
            given="\0".join(paths),
        )
        return sorted(left_out)[:MOST_NAMED]

    def commit(self, tree: str, parents: list[str], words: str) -> str:
        named = [word for parent in parents for word in ("-p", parent)]
        return self.git("commit-tree", *named, tree, given=words)

    def bundle(self, commit: str, bases: list[str]) -> None:
        """Write the objects that the remote lacks to the output."""
        ref = SCRATCH / STATE
        ref.parent.mkdir(parents=True)
        ref.write_text(f"{commit}\n")
        given = "".join(f"{each}\n" for each in (STATE, *(f"^{base}" for base in bases)))
        words = ("bundle", "create", "--quiet", "-", "--stdin")
        subprocess.run(_command(words, self._environment), input=given.encode(), check=True)


def _refs() -> tuple[dict[str, str], list[str], str]:
    """Return the branches, the commits of the remote's branches, and the branch checked out."""
    form = "--format=%(objectname) %(refname) %(HEAD)"
    listed = _git("for-each-ref", form, "refs/heads", "refs/remotes").splitlines()
    found = [line.split(" ") for line in listed]
    own = {name: commit for commit, name, *_ in found if name.startswith("refs/heads/")}
    remotes = {commit for commit, name, *_ in found if name.startswith("refs/remotes/")}
    head = next((name for _, name, *mark in found if "*" in mark), "")
    first = sorted(own, key=lambda name: (name != head, name))[:MOST_TIPS]
    return {name: own[name] for name in first}, sorted(remotes), head


def _stashes() -> list[tuple[str, str]]:
    if not (GIT / "logs/refs/stash").exists():
        return []
    lines = _git("stash", "list", "--format=%H %gs").splitlines()[:MOST_TIPS]
    return [(commit, words) for commit, _, words in (line.partition(" ") for line in lines)]


def _find(commits: set[str]) -> list[str]:
    """Return those of some commits that are here."""
    if not commits:
        return []
    given = "".join(f"{each}\n" for each in commits)
    found = _git("cat-file", "--batch-check=%(objectname)", given=given).splitlines()
    return [each for each in commits if each in found]


def _size(name: str) -> int:
    try:
        return Path(name).lstat().st_size
    except OSError:
        return 0


def _git(*arguments: str, given: str = "", more: dict[str, str] | None = None) -> str:
    status, written = _run(arguments, given, more or {})
    if status:
        raise SystemExit(f"git {arguments[0]} failed")
    return written.strip("\n")


def _try(*arguments: str, given: str = "", more: dict[str, str] | None = None) -> str:
    """Run git; returns nothing if it fails."""
    status, written = _run(arguments, given, more or {})
    return "" if status else written.strip("\n")


def _run(arguments: Sequence[str], given: str, more: dict[str, str]) -> tuple[int, str]:
    done = subprocess.run(
        _command(arguments, more),
        input=os.fsencode(given),
        stdout=subprocess.PIPE,
        check=False,
    )
    return done.returncode, os.fsdecode(done.stdout)


def _command(arguments: Sequence[str], more: dict[str, str]) -> list[str]:
    """Return the command that runs git with more variables than this process has."""
    assigned = [f"{name}={value}" for name, value in more.items()]
    return [*(["env", *assigned] if more else []), "git", *arguments]


if __name__ == "__main__":
    save(*sys.argv[2:]) if sys.argv[1] == "save" else restore(sys.argv[2])
