"""Whole stories about repositories: what agents change is delivered, and nothing else is."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path

import pytest

from tests.support.git_server import git, pointer
from tests.support.studio import BRANCH, REPOSITORY, TOKEN, Studio, pull_of, studio

PULL = f"https://forge.example.com/{REPOSITORY}/pull/1"


@pytest.mark.long
def test_what_an_agent_leaves_uncommitted_becomes_a_pull_request(tmp_path: Path) -> None:
    with studio(tmp_path) as here:
        post = here.tell("write notes.txt kept")

        assert post.state == "done"
        pushed = post.content["outcome"]["pushed"]
        assert (pushed["branch"], pushed["link"], pushed["number"]) == (BRANCH, PULL, 1)
        assert (pushed["files"], pushed["added"], pushed["removed"]) == (1, 1, 0)
        assert here.branches() == [BRANCH]
        assert here.show("notes.txt") == "kept"
        assert here.log() == (
            "demo[bot] <demo@bots.example.com>\n"
            "write notes.txt kept say word-001\n\nwrite notes.txt kept\nsay word-001\n\n"
            "Co-authored-by: Ann <ann@noreply.agent-bridge.invalid>\n"
            "Agent-Bridge-Session: web:t1:demo"
        )
        assert [(pr["head"], pr["base"], pr["title"]) for pr in here.proposals] == [
            (BRANCH, "main", "write notes.txt kept say word-001")
        ]
        assert {visit.token for visit in here.server.pushes()} == {TOKEN}


@pytest.mark.long
def test_what_an_agent_makes_for_people_is_not_part_of_the_repository(tmp_path: Path) -> None:
    with studio(tmp_path) as here:
        post = here.tell("give report.md All is well.")

        assert [file["name"] for file in post.content["files"]] == ["report.md"]
        assert here.branches() == []
        (kept,) = here.world.bridge.data_dir.glob("uploads/*/report.md")
        assert kept.read_text() == "All is well.\n"


@pytest.mark.slow
def test_a_second_turn_adds_to_the_same_branch_and_the_same_pull_request(tmp_path: Path) -> None:
    with studio(tmp_path) as here:
        here.tell("write one.txt 1")
        first = here.log(form="%H")

        post = here.tell("write two.txt 2")

        assert pull_of(post) == PULL
        assert here.log(form="%P") == first
        assert (here.show("one.txt"), here.show("two.txt")) == ("1", "2")
        assert [pr["updates"] for pr in here.proposals] == [1]


@pytest.mark.slow
def test_git_runs_in_the_home_of_the_session(tmp_path: Path) -> None:
    with studio(tmp_path, entry={"driver": "demo"}) as here:
        post = here.tell("write a.txt mine")

        assert pull_of(post) == PULL
        homes = here.world.bridge.data_dir / "session-homes"
        assert [home.name for home in homes.glob("1-*")] == ["1-demo"]


@pytest.mark.slow
def test_an_agent_may_commit_and_push_by_itself(tmp_path: Path) -> None:
    with studio(tmp_path) as here:
        post = here.tell(
            "write a.txt mine\nrun git add a.txt && git commit -qm 'By hand' && git push 2>&1"
        )

        assert "status 0" in post.content["text"]
        assert here.log(form="%an: %s") == "demo[bot]: By hand"
        assert pull_of(post) == PULL
        assert len(here.proposals) == 1


@pytest.mark.long
def test_a_refused_push_can_be_read_by_the_agent_and_by_people(tmp_path: Path) -> None:
    with studio(tmp_path) as here:
        text = "run mkdir -p .github/workflows && echo on > .github/workflows/ci.yml"
        here.world.option = "reject"

        post = here.tell(f"{text} && git add . && git commit -qm CI && git push 2>&1")

        refusal = "Changes to workflow files need a person's approval"
        assert refusal in post.content["text"]
        assert post.content["note"].startswith(f"Not pushed: {refusal}")
        assert here.branches() == []
        assert here.proposals == []


@pytest.mark.slow
def test_a_person_may_allow_workflow_files(tmp_path: Path) -> None:
    with studio(tmp_path) as here:
        post = here.tell("run mkdir -p .github/workflows && echo on > .github/workflows/ci.yml")

        (ask,) = here.world.platform.shown("ask")
        assert ask.content["view"]["title"] == "Push changes to workflow files"
        (fact,) = ask.content["view"]["facts"]
        assert (fact["kind"], fact["text"]) == ("file", ".github/workflows/ci.yml")
        assert here.show(".github/workflows/ci.yml") == "on"
        assert pull_of(post) == PULL


@pytest.mark.slow
def test_nothing_happens_where_nothing_changed(tmp_path: Path) -> None:
    with studio(tmp_path) as here:
        post = here.tell("say hello")

        assert post.content["note"] == ""
        assert here.branches() == []
        assert here.proposals == []


@pytest.mark.slow
def test_push_names_the_branch_and_none_delivers_nothing(tmp_path: Path) -> None:
    with studio(tmp_path / "push", entry={"ship": "push"}) as here:
        post = here.tell("write a.txt a")
        pushed = post.content["outcome"]["pushed"]
        assert (pushed["branch"], pushed["link"]) == (BRANCH, "")
        assert here.proposals == []
    with studio(tmp_path / "none", entry={"ship": "none"}) as here:
        post = here.tell("write a.txt a")
        assert post.content["note"] == ""
        assert here.branches() == []
        assert (here.workspace() / "a.txt").read_text() == "a\n"


@pytest.mark.slow
def test_a_conflict_with_the_base_is_said_with_a_way_out(tmp_path: Path) -> None:
    with studio(tmp_path, files={"a.txt": "old\n"}) as here:
        here.tell("say hello")
        here.server.commit(REPOSITORY, {"a.txt": "theirs\n"}, "Theirs")

        post = here.tell("run echo mine > a.txt")

        assert "It conflicts with `main` in a.txt." in post.content["note"]
        assert "ask for a merge of `main`" in post.content["note"]
        resolve = "git fetch -q; git merge -q -X ours origin/main"
        assert "conflicts" not in here.tell(f"run {resolve}").content["note"]


@pytest.mark.slow
def test_unresolved_conflicts_are_never_committed(tmp_path: Path) -> None:
    with studio(tmp_path, files={"a.txt": "old\n"}) as here:
        here.tell("run echo mine > a.txt")
        here.server.commit(REPOSITORY, {"a.txt": "theirs\n"}, "Theirs")
        before = here.log(form="%H")

        post = here.tell("run git fetch -q; git merge origin/main; true")

        assert "Not pushed: its clone has unresolved conflicts" in post.content["note"]
        assert here.log(form="%H") == before


@pytest.mark.slow
def test_a_pull_request_that_cannot_be_opened_is_opened_by_the_next_turn(tmp_path: Path) -> None:
    with studio(tmp_path) as here:
        here.forge.change(broken="The forge is away.")
        post = here.tell("write a.txt a")
        assert "The pull request could not be opened: The forge is away." in post.content["note"]
        here.forge.change(broken="")

        post = here.tell("say hello")

        assert pull_of(post) == PULL
        assert len(here.proposals) == 1


@pytest.mark.slow
def test_a_stopped_turn_delivers_nothing_and_its_work_goes_with_the_next(tmp_path: Path) -> None:
    with studio(tmp_path) as here:
        here.world.say("t1", "write a.txt kept\nhold never")
        here.world.bridge.wait((here.workspace() / "a.txt").exists, "a.txt never appeared")
        here.world.command("t1", "stop")
        here.world.settle()
        assert here.branches() == []

        here.tell("say hello")

        assert here.show("a.txt") == "kept"


@pytest.mark.long
def test_a_reviewer_reads_the_head_of_a_pull_request_and_pushes_nothing(tmp_path: Path) -> None:
    with studio(tmp_path, entry={"ship": "none"}) as here:
        head = here.server.commit(REPOSITORY, {"a.txt": "theirs\n"}, "Theirs", branch="feature")
        here.forge.change(heads={"web:t1": {"branch": "feature", "commit": head}})

        post = here.tell("run cat a.txt; git push origin HEAD:refs/heads/feature 2>&1")

        assert "theirs" in post.content["text"]
        assert "This session is read-only and has no branch to push to." in post.content["text"]
        assert here.server.head(REPOSITORY, "feature") == head


@pytest.mark.slow
def test_on_a_fork_an_agent_reads_the_head_of_the_pull_request(tmp_path: Path) -> None:
    with studio(tmp_path) as here:
        head = here.server.commit(REPOSITORY, {"a.txt": "theirs\n"}, "Theirs", branch="fork")
        bare = here.server.path(REPOSITORY)
        git(bare, "update-ref", "refs/pull/7/head", head)
        git(bare, "update-ref", "-d", "refs/heads/fork")
        here.forge.change(heads={"web:t1": {"branch": "", "commit": "refs/pull/7/head"}})

        post = here.tell("run cat a.txt; echo more >> a.txt")

        assert "theirs" in post.content["text"]
        assert post.content["note"] == ""
        assert git(bare, "for-each-ref", "--format=%(refname)").split() == [
            "refs/heads/main",
            "refs/pull/7/head",
        ]
        assert "theirs\nmore" in here.tell("run cat a.txt").content["text"]


@pytest.mark.slow
def test_an_agent_called_on_a_pull_request_adds_to_its_branch(tmp_path: Path) -> None:
    with studio(tmp_path) as here:
        head = here.server.commit(REPOSITORY, {"a.txt": "theirs\n"}, "Theirs", branch="feature")
        here.forge.change(heads={"web:t1": {"branch": "feature", "commit": head}})

        post = here.tell("write b.txt mine")

        assert post.content["outcome"]["pushed"]["branch"] == "feature"
        assert here.log("feature", "%P") == head
        assert here.proposals == []


@pytest.mark.slow
def test_the_repository_of_a_place_is_chosen_there(tmp_path: Path) -> None:
    with studio(tmp_path, default=False) as here:
        assert here.command("repo") == "Repository: none, an empty folder for each agent."
        here.tell("write a.txt alone")
        assert here.branches() == []

        said = here.command(f"repo {REPOSITORY}")
        post = here.tell("write b.txt together")

        assert said == f"Repository for this conversation: {REPOSITORY}, a clone for each agent."
        assert pull_of(post) == PULL
        (branch,) = here.branches()
        assert here.show("b.txt", branch) == "together"
        alone = here.world.bridge.data_dir / "workspaces" / "1-demo" / "a.txt"
        assert alone.read_text() == "alone\n"
        assert "an empty folder" in here.command("repo none")
        assert here.tell("run ls").content["text"].splitlines()[2] == "a.txt"


def test_a_folder_is_worked_in_as_it_is(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    with studio(tmp_path / "bridge", default=False) as here:
        said = here.command(f"repo folder:{project}")
        here.tell("write a.txt in place")

        where = f"the folder {project}, one agent at a time"
        assert said == f"Repository for this conversation: {where}."
        assert (project / "a.txt").read_text() == "in place\n"


@pytest.mark.slow
def test_two_sessions_take_turns_in_one_folder(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    settings = {"GITHUB_REPO": f"folder:{project}"}
    with studio(tmp_path / "bridge", default=False, settings=settings) as here:
        here.world.say("t1", "run touch begun\nhold go")
        here.world.bridge.wait((project / "begun").exists, "the first never began")
        here.world.say("t2", "write second.txt second")
        waits = "Waiting for another session that is working in this folder."
        here.world.platform.wait(
            lambda _: any(post.content["note"] == waits for post in here.world.turns("t2"))
        )
        assert not (project / "second.txt").exists()

        (project / "go").touch()
        here.world.settle()

        assert [post.state for post in here.world.turns("t2")] == ["done"]
        assert here.world.turns("t2")[0].content["note"] == ""
        assert (project / "second.txt").read_text() == "second\n"


def test_a_repository_that_is_gone_is_said_with_the_remedy(tmp_path: Path) -> None:
    with studio(tmp_path, settings={"GITHUB_REPO": "acme/other"}) as here:
        post = here.tell("say hello")

        assert post.state == "failed"
        assert "The repository acme/other cannot be reached" in post.content["note"]
        assert "`repo OWNER/NAME`" in post.content["note"]


def test_a_repository_that_was_renamed_is_said(tmp_path: Path) -> None:
    with studio(tmp_path, settings={"GITHUB_REPO": "acme/old"}) as here:
        here.server.moved["acme/old"] = REPOSITORY

        post = here.tell("say hello")

        assert post.state == "failed"
        moved = "The repository acme/old cannot be reached: the remote says that it has moved."
        assert moved in post.content["note"]


@pytest.mark.slow
def test_work_on_a_repository_that_went_away_is_kept_and_that_is_said(tmp_path: Path) -> None:
    with studio(tmp_path) as here:
        here.tell("say hello")
        here.server.path(REPOSITORY).rename(tmp_path / "elsewhere.git")

        post = here.tell("write a.txt kept")

        assert post.state == "done"
        assert f"Not pushed: The repository {REPOSITORY} cannot be" in post.content["note"]
        assert "The work is kept in the clone." in post.content["note"]
        (tmp_path / "elsewhere.git").rename(here.server.path(REPOSITORY))
        assert pull_of(here.tell("say again")) == PULL
        assert here.show("a.txt") == "kept"


@pytest.mark.long
def test_a_clone_is_prepared_by_the_default_branch_and_what_it_said_is_kept(
    tmp_path: Path,
) -> None:
    script = "#!/bin/sh\necho prepared | tee .git/prepared\n"
    with studio(tmp_path, files={".agent-bridge/setup": script}) as here:
        post = here.tell("run cat .git/prepared")

        assert "prepared" in post.content["text"]
        kept = here.world.bridge.rows("select text from transcript where kind = 'notice'")
        assert ("`.agent-bridge/setup` ended with status 0.\nprepared",) in kept


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("git-lfs") is None, reason="git-lfs is not installed")
def test_large_files_are_read_and_delivered(tmp_path: Path) -> None:
    with studio(tmp_path) as here:
        kept = here.server.keep_large(REPOSITORY, b"large\n")
        files = {".gitattributes": "*.bin filter=lfs\n", "a.bin": kept}
        here.server.commit(REPOSITORY, files, "Large")

        post = here.tell("run cat a.bin; echo new > b.bin")

        assert "large" in post.content["text"]
        assert pull_of(post) == PULL
        assert here.show("b.bin") == pointer(b"new\n").strip()
        assert b"new\n" in here.server.large[REPOSITORY].values()


@pytest.mark.slow
def test_a_repository_gives_variables_to_its_setup_and_to_agents_in_it(tmp_path: Path) -> None:
    value = "value-of-the-repository-0123456789"
    script = "#!/bin/sh\necho for $STAGE with $APP_TOKEN; echo $HOME > .git/home\n"
    entry = {"env": {"STAGE": "test"}, "env_passthrough": ["APP_TOKEN"]}
    settings = {"REPOSITORIES_JSON": json.dumps({REPOSITORY: entry}), "APP_TOKEN": value}
    with studio(tmp_path, files={".agent-bridge/setup": script}, settings=settings) as here:
        post = here.tell(
            "run echo $STAGE ${#APP_TOKEN} $APP_TOKEN; cat .git/home; echo $APP_TOKEN > a.txt"
        )
        here.command("repo none")
        elsewhere = here.tell("run echo at $STAGE ${#APP_TOKEN}")

        # It is there, and wherever it would leave it is taken out or refused.
        assert f"test {len(value)} [secret]" in post.content["text"]
        assert str(here.world.bridge.data_dir) in post.content["text"]
        assert "a.txt holds a secret that the bridge knows" in post.content["note"]
        kept = here.world.bridge.rows("select text from transcript where kind = 'notice'")
        setup = "`.agent-bridge/setup` ended with status 0.\nfor test with [secret]"
        assert (setup,) in kept
        assert "at 0" in elsewhere.content["text"]
        assert value not in here.world.bridge.log.read_text()


@pytest.mark.slow
def test_a_shallow_repository_is_worked_in_as_any_other(tmp_path: Path) -> None:
    settings = {"REPOSITORIES_JSON": json.dumps({REPOSITORY: {"clone": "shallow"}})}
    with studio(tmp_path, settings=settings) as here:
        bare = here.server.path(REPOSITORY)
        for number in range(60):
            commit = git(bare, "commit-tree", "main^{tree}", "-p", "main", "-m", str(number))
            git(bare, "update-ref", "refs/heads/main", commit)

        post = here.tell("run git rev-list --count HEAD; echo a > a.txt")

        assert "50" in post.content["text"].split()
        assert pull_of(post) == PULL
        assert here.log(form="%P") == here.server.head(REPOSITORY, "main")


# Looks at every process, again and again, for as long as it is told to.
WATCH = (
    "(while [ ! -e .git/done ]; do cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline; done "
    "> .git/seen 2>/dev/null) &"
)


@pytest.mark.slow
@pytest.mark.parametrize(("sandbox", "watch"), [("auto", WATCH), ("none", "")])
def test_the_past_of_a_partial_repository_comes_when_an_agent_looks_at_it(
    tmp_path: Path, sandbox: str, watch: str
) -> None:
    settings = {"REPOSITORIES_JSON": json.dumps({REPOSITORY: {"clone": "partial"}})}
    with studio(tmp_path, entry={"sandbox": sandbox}, settings=settings) as here:
        here.server.commit(REPOSITORY, {"old.txt": "what stood here\n"}, "Old")
        here.server.take_away(REPOSITORY, "old.txt", "Gone")
        old = git(here.server.path(REPOSITORY), "rev-parse", "main~1:old.txt")
        assert "README.md" in here.tell("run ls").content["text"]
        (mirror,) = (here.world.bridge.data_dir / "mirrors").glob("*.git")
        assert not has(mirror, old)

        look = "git log -p; git show HEAD~1:old.txt > back.txt"
        first = here.tell(f"run {watch} {look}; touch .git/done; wait")
        here.server.commit(REPOSITORY, {"theirs.txt": "theirs\n"}, "Theirs")
        second = here.tell("run git fetch -q && git merge -q -m Merge origin/main")

        assert "-what stood here" in first.content["text"]
        assert has(mirror, old)
        assert [pull_of(turn) for turn in (first, second)] == [PULL, PULL]
        assert (here.show("back.txt"), here.show("theirs.txt")) == ("what stood here", "theirs")
        assert [pr["updates"] for pr in here.proposals] == [1]
        assert {visit.token for visit in here.server.visits} == {TOKEN}
        assert holding_token(here) == []


def has(mirror: Path, name: str) -> bool:
    """Tell whether an object lies in a repository."""
    return not git(mirror, "cat-file", "--batch-check", given=name).endswith("missing")


@pytest.mark.slow
def test_work_goes_on_in_the_same_clone_after_a_restart(tmp_path: Path) -> None:
    with studio(tmp_path) as here:
        here.tell("write one.txt 1")
        here.world.restart()

        post = here.tell("write two.txt 2")

        assert pull_of(post) == PULL
        assert (here.show("one.txt"), here.show("two.txt")) == ("1", "2")
        assert not here.workspace(number=2).exists()


@pytest.mark.slow
def test_no_token_is_anywhere_an_agent_could_see(tmp_path: Path) -> None:
    basic = base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode()
    # Looks at every process, again and again, while its own push is under way.
    watch = (
        "(while [ ! -e .git/done ]; do cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline; done "
        "> seen 2>/dev/null) & git push > said 2>&1; touch .git/done; wait; env >> seen; "
        "cat .git/config .git/packed-refs >> seen; git remote -v >> seen; "
        f"grep -rsa x-acces[s]-token {tmp_path} $HOME >> seen; "
        "git credential fill < /dev/null >> seen 2>&1; true"
    )
    with studio(tmp_path) as here:
        here.tell(f"write a.txt a\nrun git add a.txt; git commit -qm A; {watch}")
        seen = (here.workspace() / "seen").read_bytes().decode(errors="replace")
        said = (here.workspace() / "said").read_text()

        assert here.show("a.txt") == "a"
        assert "AGENT_BRIDGE_PROCESS" in seen
        secrets = (TOKEN, basic, "x-access-token")
        assert [secret for secret in secrets if secret in seen or secret in said] == []
        assert holding_token(here) == []


def holding_token(here: Studio) -> list[Path]:
    """List what the bridge or its agents wrote that has the token in it."""
    basic = base64.b64encode(f"x-access-token:{TOKEN}".encode())
    kept = [*here.world.bridge.data_dir.rglob("*"), here.world.bridge.log]
    return [
        file
        for file in kept
        if file.is_file() and any(s in file.read_bytes() for s in (TOKEN.encode(), basic))
    ]


@pytest.mark.long
def test_the_page_shows_repository_branch_changes_and_what_was_shipped(tmp_path: Path) -> None:
    with studio(tmp_path) as here:
        here.world.say("t1", "write new.txt new\nhold go")
        here.world.bridge.wait((here.workspace() / "new.txt").exists, "new.txt never appeared")
        unshipped = here.world.bridge.http.get("/workspace/1")
        (here.workspace() / "go").touch()
        here.world.settle()
        here.tell("write a.txt <b>bold</b>")

        page = here.world.bridge.http.get("/workspace/1")
        missing = here.world.bridge.http.get("/workspace/99")
        stranger = here.world.bridge.http.get("/workspace/1", headers={"Authorization": ""})

        assert "Uncommitted" in unshipped.text
        assert '<span class="l add" data-n="1"><span>new\n' in unshipped.text
        shown = (REPOSITORY, BRANCH, PULL, here.log(form="%H")[:12], ">&lt;b&gt;bold&lt;/b&gt;\n")
        assert [words for words in shown if words not in page.text] == []
        assert "Uncommitted" not in page.text
        assert (page.status_code, missing.status_code) == (200, 404)
        assert stranger.status_code == 401
