"""An agent tries to keep what it did in a person's folder, or in its clone, from the Changes page.

The person's own `git status` is the witness for folders in place: it runs as the person, with their
home. Agents without isolation can change what that witness obeys; then the page shows more than it.
"""

from __future__ import annotations

import html
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.children.sandbox import Unavailable, find_bubblewrap
from tests.support.bridge import SECONDS
from tests.support.ordinary import (
    LOOK_SECONDS,
    ORDINARY_UID,
    USERS,
    Running,
    Server,
    agents,
    laid_out,
)
from tests.support.variants import quick

FOUND = find_bubblewrap("/usr/local/bin:/usr/bin:/bin")
pytestmark = pytest.mark.skipif(
    isinstance(FOUND, Unavailable), reason=f"{FOUND}: an agent cannot be confined"
)
WORK = "echo more >> README.md; echo bad > hidden.sh; chmod +x src/tool.sh; echo new > src/new.sh"
SEEN = {"README.md", "hidden.sh", "src/tool.sh", "src/new.sh"}
GLOBAL = "git config --global"
IN_HOME = {
    "ignore rules": "mkdir -p ~/.config/git; echo '*' > ~/.config/git/ignore",
    "everything at once": f"mkdir -p ~/.config/git; echo '* filter=x diff=x -text' > "
    f"~/.config/git/attributes; echo '*' > ~/.all; {GLOBAL} core.excludesFile ~/.all; "
    f"{GLOBAL} filter.x.clean 'git show HEAD:%f'; {GLOBAL} diff.x.textconv true; "
    f"{GLOBAL} status.showUntrackedFiles no; {GLOBAL} core.fsmonitor true; "
    f"{GLOBAL} core.untrackedCache true; {GLOBAL} core.fileMode false; "
    f"{GLOBAL} diff.external true; {GLOBAL} core.ignoreStat true; {GLOBAL} diff.orderFile /x",
    "another work tree": f"{GLOBAL} core.worktree /tmp",
    "configuration that is broken": "echo '[' > ~/.gitconfig",
    "a shared file of the home": "mkdir -p ~/.config; ln -s /dev/stdin ~/.config/git",
    "the environment of shells": "echo 'export GIT_DIR=/tmp' > ~/.profile; cp ~/.profile ~/.bashrc",
}
IN_REPOSITORY = {
    "info/exclude": "echo '*' > .git/info/exclude",
    "bits of the index": "git update-index --assume-unchanged README.md; "
    "git update-index --skip-worktree src/tool.sh; git add -N hidden.sh src/new.sh; "
    "git update-index --assume-unchanged hidden.sh; git update-index --skip-worktree src/new.sh",
    "a filter that gives the old file": "git config filter.x.clean 'git show HEAD:%f'; "
    "git config filter.x.required true; echo '* filter=x' > .git/info/attributes",
    "settings": "echo '*' > .git/all; git config core.excludesFile .git/all; "
    "git config core.fileMode false; git config status.showUntrackedFiles no; "
    "git config core.fsmonitor 'printf /'; git config core.untrackedCache true; "
    "git config core.ignoreStat true; git config core.trustctime false; "
    "git config core.checkStat minimal; git config diff.external true; "
    "git config core.bigFileThreshold 1; git config diff.ignoreSubmodules all",
    "an included file": "git config -f .git/more core.fileMode false; echo '*' > .git/all; "
    "git config -f .git/more core.excludesFile .git/all; git config include.path more",
    "another work tree": "mkdir .git/else; git config core.worktree else",
    "configuration of the worktree": "git config extensions.worktreeConfig true; "
    "git config --worktree core.sparseCheckout true; echo /nothing > .git/info/sparse-checkout",
    "replaced objects": "new=$(git hash-object -w hidden.sh); "
    "git replace $(git rev-parse HEAD:README.md) $(git hash-object -w README.md); "
    "git replace --list",
    "times that look unchanged": "git config core.trustctime false; git config core.checkStat "
    "minimal; git add README.md; git reset -q --soft; touch -r src README.md .git/index",
}


@pytest.fixture(scope="module", params=quick(1, USERS))
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with laid_out(request.param) as server:
        settings = server.home / ".config" / "git"
        settings.mkdir(parents=True)
        (settings / "ignore").write_text("*.mine\n")
        (server.home / ".gitconfig").write_text("[user]\n\tname = Kim\n\temail = kim@example.com\n")
        server.own(server.home)
        yield server


@pytest.fixture(scope="module")
def bridge(server: Server) -> Iterator[Running]:
    isolated = server.demo(mode="free", sandbox="bubblewrap")
    with server.serving(
        AGENTS_JSON=agents(isolated=isolated, open=server.demo(mode="free", sandbox="none")),
        PAGE_ENABLED="true",
    ) as bridge:
        yield bridge


@pytest.fixture
def project(server: Server) -> Path:
    """Make a person's repository, with rules of its own in `.git/info/exclude`."""
    folder = server.folder / f"project-{time.monotonic_ns()}"
    (folder / "src").mkdir(parents=True)
    (folder / "README.md").write_text("# Mine\n")
    (folder / "src" / "tool.sh").write_text("#!/bin/sh\n")
    server.own(folder)
    use_git(server, folder, "init", "-q", "-b", "main")
    use_git(server, folder, "add", ".")
    use_git(server, folder, "commit", "-qm", "First")
    (folder / ".git" / "info" / "exclude").write_text("*.local\n")
    return folder


def use_git(server: Server, folder: Path, *words: str) -> str:
    """Use git as the person whose folder it is."""
    done = subprocess.run(
        server.argv("git", *words),
        cwd=folder,
        env=server.environment(),
        capture_output=True,
        text=True,
        check=True,
        timeout=SECONDS,
    )
    return done.stdout


def status(server: Server, folder: Path) -> set[str]:
    """List what the person's `git status` lists."""
    words = ("status", "--porcelain", "-z", "--untracked-files=all")
    return {line[3:] for line in use_git(server, folder, *words).split("\0") if line}


class Seen:
    """What the page shows of the changes in a folder after an agent worked there."""

    def __init__(self, bridge: Running, folder: Path, script: str, agent: str) -> None:
        where = {"agent": agent, "repository": f"folder:{folder}"}
        text = f"run ({script}) 2>&1; echo ran"
        begun = bridge.http.post("/api/v1/sessions", json={**where, "text": text})
        assert begun.status_code == 201, begun.text
        address = f"/api/v1/sessions/{begun.json()['id']}"
        deadline = time.monotonic() + SECONDS
        while bridge.http.get(address).json()["turns"][-1]["state"] not in ("done", "failed"):
            assert time.monotonic() < deadline, bridge.log.read_text(errors="replace")[-4000:]
            time.sleep(LOOK_SECONDS)
        items = bridge.http.get(f"{address}/transcript").json()["items"]
        self.said = "\n".join(str(item["text"]) for item in items if item["kind"] != "message")
        page = bridge.http.get(f"/workspace/{begun.json()['id']}").text
        headings = re.findall(r'<h3 tabindex="-1">(.*?)</h3>', page)
        self.files = {html.unescape(re.sub("<[^>]*>", "", each)) for each in headings}
        self.remarks = html.unescape("\n".join(re.findall(r'role="note">(.*?)</p>', page)))
        self.page = page


@pytest.mark.parametrize("script", quick(2, IN_HOME))
def test_a_home_hides_nothing_that_the_persons_own_git_sees(
    server: Server, bridge: Running, project: Path, script: str
) -> None:
    more = "echo mine > a.mine; echo local > b.local"

    seen = Seen(bridge, project, f"{WORK}; {more}; {script}", "isolated")

    assert "ran" in seen.said
    assert (project / "a.mine").exists()
    assert seen.files == status(server, project) == SEEN
    assert seen.remarks == ""


@pytest.mark.long
@pytest.mark.parametrize("script", quick(1, IN_HOME))
def test_a_home_of_an_agent_without_isolation_hides_nothing_either(
    server: Server, bridge: Running, project: Path, script: str
) -> None:
    seen = Seen(bridge, project, f"{WORK}; echo local > b.local; {script}", "open")

    assert seen.files == status(server, project) == SEEN


@pytest.mark.long
@pytest.mark.parametrize("script", quick(3, IN_REPOSITORY))
def test_an_agent_without_isolation_hides_nothing_by_what_it_writes_into_the_repository(
    bridge: Running, project: Path, script: str
) -> None:
    seen = Seen(bridge, project, f"{WORK}; {script}", "open")

    assert "ran" in seen.said
    assert seen.files - {"b.local"} == SEEN


@pytest.mark.long
def test_rules_that_the_agent_wrote_into_the_repository_are_told_and_not_applied(
    bridge: Running, project: Path
) -> None:
    seen = Seen(bridge, project, f"{WORK}; echo '*' > .git/info/exclude", "open")

    assert seen.files == SEEN
    assert ".git/info/exclude may come from the agent" in seen.remarks


TRICKS: dict[str, tuple[str, Callable[[str], bool]]] = {
    "a folder that ignores itself": (
        "mkdir deep; echo '*' > deep/.gitignore; echo bad > deep/evil.sh",
        lambda said: "deep/.gitignore is new or changed" in said and "deep/evil.sh" in said,
    ),
    "rules of the project": (
        "echo 'evil*' > .gitignore; echo bad > evil.sh",
        lambda said: ".gitignore is new or changed" in said and "evil.sh" in said,
    ),
    "a repository without commits": (
        "git init -q inner; echo bad > inner/evil.sh",
        lambda said: "Git repositories inside: inner/." in said,
    ),
    "a repository in an ignored folder": (
        "git init -q b.local; git -C b.local config core.fsmonitor x",
        lambda said: "Git repositories inside: b.local/." in said,
    ),
    "a folder that looks like a bare repository": (
        "git init -q --bare x; mkdir -p docs/data; cp -r x/* docs/data; rm -r x; "
        "git config -f docs/data/config core.worktree .; echo x > docs/data/file",
        lambda said: "Git repositories inside: docs/data/." in said,
    ),
    "a repository elsewhere": (
        "mkdir -p a/b; echo 'gitdir: ../else' > a/b/.git",
        lambda said: "Git repositories inside: a/b/." in said,
    ),
}


@pytest.mark.long
@pytest.mark.parametrize(("script", "tells"), quick(3, TRICKS))
def test_what_the_persons_git_does_not_show_or_would_obey_is_told(
    server: Server,
    bridge: Running,
    project: Path,
    script: str,
    tells: Callable[[str], bool],
) -> None:
    seen = Seen(bridge, project, f"{WORK}; {script}", "isolated")

    listed = {name for name in status(server, project) if not name.endswith("/")}
    assert seen.files == listed
    assert listed >= SEEN
    assert tells(seen.remarks), seen.remarks


def test_a_new_repository_in_a_persons_folder_is_told_once_where_the_work_was_asked_for(
    bridge: Running, project: Path
) -> None:
    seen = Seen(
        bridge, project, "git init -q inner; git -C inner config core.fsmonitor x", "isolated"
    )

    assert "New or changed git repositories in the folder: inner/." in seen.said


@pytest.mark.long
@pytest.mark.parametrize("agent", ["isolated", "open"])
def test_what_was_there_before_the_agent_is_not_reported(
    server: Server, bridge: Running, project: Path, agent: str
) -> None:
    use_git(server, project, "init", "-q", "lib.local")
    (project / "cache").mkdir()
    (project / "cache" / ".gitignore").write_text("*\n")
    server.own(project)

    seen = Seen(bridge, project, f"{WORK}; echo x > cache/more", agent)

    assert seen.files == status(server, project) == SEEN
    assert seen.remarks == ""
    assert "repositories" not in seen.said


@pytest.mark.slow
def test_the_folder_of_another_user_is_looked_at_as_that_user(
    server: Server, bridge: Running, project: Path
) -> None:
    owner = server.uid or ORDINARY_UID
    subprocess.run(["chown", "-hR", f"{owner}:{owner}", project], check=True)
    project.chmod(0o700)

    seen = Seen(bridge, project, f"{WORK}; {IN_HOME['ignore rules']}", "isolated")

    assert seen.files == SEEN
    assert (project / "hidden.sh").stat().st_uid == owner
