"""An agent works in a person's own folder and tries to have that person's git run its programs.

The agent is confined; then the person uses git in the folder as people do every day.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.children.sandbox import Unavailable, find_bubblewrap
from tests.support.bridge import DEMO, ROOT, BridgeProcess
from tests.support.git_server import QUIET, git
from tests.support.platform import Platform
from tests.support.variants import quick

FOUND = find_bubblewrap(os.environ["PATH"])
pytestmark = pytest.mark.skipif(
    isinstance(FOUND, Unavailable), reason=f"{FOUND}: an agent cannot be confined"
)
CANARY = "canary"
EVERY_DAY = (
    ("status",),
    ("checkout", "-q", "-B", "topic"),
    ("add", "--all"),
    ("commit", "-qm", "Mine", "--allow-empty"),
    ("log", "-1"),
    ("diff", "HEAD~1"),
    ("stash", "list"),
    ("fetch", "--all"),
)

RUN = "$PWD/run.sh"
ATTACKS = {
    "a hook": f"git config core.hooksPath .git/hooks; cp {RUN} .git/hooks/post-checkout",
    "fsmonitor": f"git config core.fsmonitor {RUN}",
    "another configuration": f"cp -r .git evil; git -C evil config core.fsmonitor {RUN}; "
    "echo ../evil > .git/commondir",
    "configuration of the worktree": "git config extensions.worktreeConfig true; "
    f"git config -f .git/config.worktree core.fsmonitor {RUN}",
    "a .git in its place": f"mv .git .git2; cp -r .git2 .git; git config core.fsmonitor {RUN}",
    "a .git that is a file": f"cp -r .git evil; git -C evil config core.fsmonitor {RUN}; "
    "rm -rf .git; echo 'gitdir: evil' > .git",
    "attributes": f"git config filter.x.clean {RUN}; echo '* filter=x' > .git/info/attributes",
    "hooks of the tree": f"cp {RUN} .husky/post-checkout; cp {RUN} .husky/pre-commit",
    "hooks of the tree moved": f"mv .husky .husky2; mkdir .husky; cp {RUN} .husky/pre-commit",
    "configuration of the tree": f"git config -f .gitconfig core.fsmonitor {RUN}",
    "configuration that is missing": f"git config -f missing.cfg core.fsmonitor {RUN}",
    "a program of the configuration": f"cp {RUN} tools/editor",
    "a folder above it moved": f"mv tools t2; mkdir tools; cp {RUN} tools/editor",
    "a submodule's configuration": f"git -C .git/modules/vendor/lib config core.fsmonitor {RUN}",
    "a submodule's .git": "rm -f vendor/lib/.git; git init -q vendor/lib; "
    f"git -C vendor/lib config core.fsmonitor {RUN}",
    "a submodule moved": "mv vendor v2; mkdir -p vendor/lib; git init -q vendor/lib; "
    f"git -C vendor/lib config core.fsmonitor {RUN}",
    "a submodule that is not there": f"git init -q empty; git -C empty config core.fsmonitor {RUN}",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make a person's repository with a submodule, hooks in the tree, and an included file."""
    library, project = tmp_path / "library", tmp_path / "project"
    for folder in (library, project):
        git(tmp_path, "init", "-q", "-b", "main", str(folder))
        (folder / "README.md").write_text("# Mine\n")
        git(folder, "add", ".")
        git(folder, "commit", "-qm", "First")
    allowed = ("-c", "protocol.file.allow=always")
    git(project, *allowed, "submodule", "--quiet", "add", str(library), "vendor/lib")
    head = git(library, "rev-parse", "HEAD")
    git(project, "update-index", "--add", "--cacheinfo", f"160000,{head},empty")
    for name in (".husky/post-commit", "tools/editor"):
        path = project / name
        path.parent.mkdir()
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    (project / ".gitconfig").write_text("[alias]\n\tst = status\n")
    git(project, "config", "core.hooksPath", ".husky")
    git(project, "config", "core.pager", "./tools/editor")
    git(project, "config", "core.fsmonitor", "tools/editor")
    git(project, "config", "--add", "include.path", "../.gitconfig")
    git(project, "config", "--add", "include.path", "../missing.cfg")
    git(project, "add", ".gitconfig", ".husky", "tools")
    git(project, "commit", "-qm", "Second")
    return project


@contextmanager
def bridge_in(folder: Path, root: Path) -> Iterator[BridgeProcess]:
    """Run a bridge whose isolated agent does what it is told, in a person's folder."""
    root.mkdir()
    with Platform() as platform:
        bridge = BridgeProcess(root, platform, page=True)
        bridge.agents = {"demo": {"command": DEMO, "mode": "free", "sandbox": "bubblewrap"}}
        bridge.settings = {"GITHUB_REPO": f"folder:{folder}"}
        with bridge:
            yield bridge


def tell(bridge: BridgeProcess, text: str) -> str:
    """Tell the agent something and return what it answered."""
    made = bridge.http.post("/api/v1/sessions", json={"agent": "demo", "text": text})
    made.raise_for_status()
    query = "select state from turn order by id desc limit 1"
    bridge.wait(lambda: bridge.rows(query)[0][0] in {"done", "failed"}, "the turn never ended")
    words = bridge.rows("select text from transcript where kind in ('text', 'notice')")
    return "\n".join(row[0] or "" for row in words)


def use_git(project: Path) -> None:
    """Do what a person does in a repository; whether git likes it does not matter."""
    for words in EVERY_DAY:
        subprocess.run(
            ["git", *words],
            cwd=project,
            env={**QUIET, "HOME": str(project.parent)},
            capture_output=True,
            timeout=30,
        )


@pytest.mark.long
@pytest.mark.parametrize("script", quick(5, ATTACKS))
def test_a_persons_git_runs_nothing_that_an_agent_planted_in_their_folder(
    tmp_path: Path, project: Path, script: str
) -> None:
    """Attack 14."""
    canary = tmp_path / CANARY
    planted = f"#!/bin/sh\\ntouch {canary}\\n"
    with bridge_in(project, tmp_path / "bridge") as bridge:
        said = tell(
            bridge, f"run printf '{planted}' > run.sh; chmod +x run.sh; ({script}) 2>&1; ls -A"
        )

    use_git(project)

    assert "run.sh" in said
    assert (project / "run.sh").exists()
    assert not canary.exists()


def test_a_hook_cannot_be_planted_in_a_plain_repository(tmp_path: Path) -> None:
    """Attack 14, word for word."""
    project, canary = tmp_path / "project", tmp_path / CANARY
    git(tmp_path, "init", "-q", "-b", "main", str(project))
    git(project, "commit", "-q", "--allow-empty", "-m", "First")
    with bridge_in(project, tmp_path / "bridge") as bridge:
        said = tell(
            bridge,
            f"run mkdir -p .git/hooks; printf '#!/bin/sh\\ntouch {canary}\\n' > "
            ".git/hooks/post-checkout; chmod +x .git/hooks/post-checkout; "
            f"git config core.fsmonitor 'touch {canary};'; ls -A .git 2>&1",
        )

    use_git(project)

    assert "HEAD" in said
    assert not canary.exists()


def test_a_folder_without_a_repository_gets_none_from_the_agent(tmp_path: Path) -> None:
    """Attack 14, by `git init`."""
    project = tmp_path / "project"
    project.mkdir()
    canary = tmp_path / CANARY
    with bridge_in(project, tmp_path / "bridge") as bridge:
        said = tell(
            bridge,
            f"run git init . 2>&1; git config core.fsmonitor 'touch {canary};' 2>&1; touch ran",
        )

    use_git(project)

    assert (project / "ran").exists()
    assert "cannot" in said.lower() or "read-only" in said.lower()
    assert not canary.exists()


def test_a_repository_that_cannot_be_protected_is_not_worked_in(tmp_path: Path) -> None:
    """Attack 14: a mount cannot lie on a symbolic link."""
    project = tmp_path / "project"
    git(tmp_path, "init", "-q", "-b", "main", str(project))
    (project / ".git").rename(tmp_path / "elsewhere")
    (project / ".git").symlink_to(tmp_path / "elsewhere")

    with bridge_in(project, tmp_path / "bridge") as bridge:
        said = tell(bridge, "run touch ran")

    assert "is a symbolic link" in said
    assert not (project / "ran").exists()


@pytest.mark.slow
def test_a_bridge_does_not_start_with_a_folder_that_agents_must_not_work_in(
    tmp_path: Path,
) -> None:
    """Attack 14 and the table of configurations: `/etc`, and the folder of the bridge's `.env`."""
    (tmp_path / ".env").write_text("LOG_LEVEL=info\n")
    (tmp_path / ".env").chmod(0o600)
    home = tmp_path / "home"
    home.mkdir()

    for folder, reason in ((Path("/etc"), "belongs to the system"), (tmp_path, "its own files")):
        done = subprocess.run(
            [sys.executable, "-m", "app", "serve"],
            cwd=tmp_path,
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": str(ROOT),
                "HOME": str(home),
                "DATA_DIR": str(home / "data"),
                "GITHUB_REPO": f"folder:{folder}",
            },
            capture_output=True,
            text=True,
            timeout=60,
        )

        assert done.returncode == 1
        assert "GITHUB_REPO: names a folder that agents must not work in." in done.stderr
        assert reason in done.stderr
