"""A secret that a person pasted and an agent repeated is purged: every byte of every store.

Searched are DATA_DIR, SHARED_DIR, the database, and all that the platforms hold.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from tests.support import canary
from tests.support.bridge import BridgeProcess
from tests.support.github import Hub, PullWorld
from tests.support.linear import LinearWorld
from tests.support.postgres import read_store
from tests.support.slack import SlackWorld

pytestmark = [pytest.mark.long, pytest.mark.timeout(180)]
"""A bridge works on a repository, and is searched byte by byte."""

LEAKED = "zq7-Pelican-4411-secret"
BASE64 = base64.b64encode(LEAKED.encode()).decode()
HEX = LEAKED.encode().hex()
REPEAT = "\n".join(
    (
        f"say The key is {LEAKED}.",
        f"write {LEAKED}.env KEY={LEAKED}",
        f"write encoded.txt {BASE64} {HEX}",
        f"run git add -A && git commit -qm 'Add {LEAKED}' && git reset -q --hard HEAD~1",
        f"run git stash list; echo {LEAKED} > untracked.txt; ln -s {LEAKED} link",
        f"give key.txt {LEAKED}",
        f"note The key is {LEAKED}.",
    )
)
"""What an agent does that puts a secret wherever it can, and in no commit that a branch needs."""


KEPT = {"data", "shared"}


def purge(bridge: BridgeProcess, **more: Any) -> dict[str, Any]:
    """Purge the secret over the API."""
    answer = bridge.http.post("/api/v1/purges", json={"text": LEAKED, **more}, timeout=90)
    assert answer.status_code == 200, answer.text
    done: dict[str, Any] = answer.json()
    return done


def find_kept(bridge: BridgeProcess, *folders: Path) -> list[str]:
    """List what the bridge keeps of the secret: on its disk, in shared folders, in its database."""
    found = [each for folder in (bridge.data_dir, *folders) for each in find_in(folder)]
    return found + canary.find_within(read_store(bridge.data_dir), LEAKED, "database")


def find_in(folder: Path) -> list[str]:
    """List what a folder holds of the secret."""
    return [f"{folder.name}/{each}" for each in canary.find_every_form(folder, LEAKED)]


def test_slack_holds_only_what_people_wrote(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o700)
    with Hub(tmp_path, ("claude",)) as hub:
        settings = {**hub.settings, "SHARED_DIR": str(shared)}
        settings |= {"GITHUB_REPO": "acme/widgets"}
        entry = {"mode": "free", "memory": "auto", "ship": "none"}
        with SlackWorld(tmp_path, settings=settings, entry=entry) as world:
            thread = world.say(f"{world.at('claude')} {REPEAT}")
            world.wait_answer(thread, LEAKED)
            world.settle()
            asked = "slack['messages'][0].text"
            assert {each.partition("/")[0] for each in find_kept(world.bridge, shared)} >= KEPT
            assert len(find_on(world)) > 3

            first = purge(world.bridge)

            whys = ["unshipped", "platform", "copies"]
            assert [each["why"] for each in first["left"]] == whys
            kept = {each.split("/")[1] for each in find_kept(world.bridge, shared)}
            assert kept == {"workspaces"}
            assert find_on(world) == [asked]
            assert first["left"][1]["where"] == f"{world.channel}:{thread}"

            done = purge(world.bridge, discard=True)

            assert (done["clones"], find_kept(world.bridge, shared)) == (1, [])
            assert [each["why"] for each in done["left"]] == ["platform", "copies"]
            # What was said goes on in a new clone.
            world.say("run git status --short --branch; git log --oneline -1", thread=thread)
            world.wait_answer(thread, "## agent/claude")
            world.settle()
            assert find_kept(world.bridge, shared) == []


def test_github_holds_only_what_people_wrote_and_what_was_pushed(tmp_path: Path) -> None:
    with PullWorld(tmp_path, entry={"mode": "free", "memory": "auto"}) as world:
        issue = world.issue("Please help.", "A bug")
        world.github.comment("ann", issue, f"@claude-bridge {REPEAT}")
        world.wait_for(issue, LEAKED)
        world.settled()
        pull = world.opened()
        world.github.comment("ann", pull, f"@claude-bridge say {LEAKED} again")
        world.wait_for(pull, "again")
        world.settled()
        theirs = ["github.issues[1].comments[0].body", "github.issues[2].comments[0].body"]
        assert any("gates" in each for each in find_kept(world.bridge))
        assert "github.issues[2].title" in find_on_github(world)

        first = purge(world.bridge)

        assert find_on_github(world) == theirs
        assert (first["clones"], find_kept(world.bridge)) == (1, [])
        assert [each["why"] for each in first["left"][:1]] == ["remote"]
        links = [each["where"] for each in first["left"] if each["why"] == "platform"]
        assert [link.rpartition("/")[2].partition("#")[0] for link in links] == ["1", "2", "2"]

        # The branch goes on GitHub too; then a fetch does not bring it back.
        assert pull.pull is not None
        world.github.close_pull("ann", pull)
        for ref in (f"heads/{pull.pull.head}", f"pull/{pull.number}/head"):
            world.github.git.git("acme/widgets", "update-ref", "-d", f"refs/{ref}")
        other = world.issue("@claude-bridge run ls", "Another bug")
        world.wait_for(other, "README.md")
        world.settled()
        assert find_kept(world.bridge) == []
        assert purge(world.bridge)["left"][-1]["why"] == "copies"


def find_on_github(world: PullWorld) -> list[str]:
    """List what GitHub shows of the secret."""
    return canary.find_within(world.repository, LEAKED, "github")


def find_on(world: SlackWorld) -> list[str]:
    """List what Slack shows of the secret."""
    slack = world.slack
    shown = [each for each in slack.messages if not each.deleted]
    held = {"messages": shown, "files": slack.files, "sessions": slack.sessions}
    return canary.find_within(held, LEAKED, "slack")


def test_linear_is_named_where_it_holds_what_cannot_be_changed_there(tmp_path: Path) -> None:
    entry = {"mode": "free", "memory": "auto", "ship": "none"}
    with Hub(tmp_path, ("demo",)) as hub:
        settings = {**hub.settings, "LINEAR_TEAM_REPOS": "ENG=acme/widgets"}
        with LinearWorld(tmp_path, settings=settings, entry=entry) as world:
            session = world.assign("plan look; change", *REPEAT.splitlines())
            world.wait_end(session)
            assert any("workspaces" in each for each in find_kept(world.bridge))

            done = purge(world.bridge, discard=True)

            assert (done["clones"], find_kept(world.bridge)) == (1, [])
            assert [each["why"] for each in done["left"]] == ["unreached", "copies"]
            assert done["left"][0]["where"] == session.issue.url
            assert len(canary.find_within(session, LEAKED)) > 3
