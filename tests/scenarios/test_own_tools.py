"""Agents use tools in the place where they were asked: posts, questions, pull requests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.github import PullWorld
from tests.support.platform import RemotePost
from tests.support.slack import SlackWorld
from tests.support.studio import Studio, studio

pytestmark = pytest.mark.timeout(240)  # several turns one after another, also on a full machine

PORT = '{"question": "Which port?", "options": ["8000", "9000"], "wait_seconds": 40}'


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """Share one bridge with a repository; places choose their own branch."""
    with studio(tmp_path_factory.mktemp("tools")) as made:
        made.world.option = "option-2"
        yield made


def results(post: RemotePost) -> list[Any]:
    """Read the results that the demo agent shows."""
    lines = post.content["text"].splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def posted(here: Studio, place: str, kind: str) -> list[RemotePost]:
    return [
        post
        for post in here.world.platform.posts
        if post.content["kind"] == kind and post.target.startswith(f"web:{place}:")
    ]


@pytest.mark.long
def test_work_is_proposed_in_the_agents_words_before_its_turn_ends(here: Studio) -> None:
    title, body = "Add a greeting", "People asked for it."
    opened = json.dumps({"title": title, "body": body})

    first = here.tell(f"write a.txt hello\ntool pr_open {opened}\nwrite b.txt later", "pr")
    (made,) = results(first)
    (proposal,) = here.proposals
    assert (made["link"], made["state"], made["problem"]) == (proposal["link"], "pushed", "")
    assert (made["branch"], proposal["title"]) == (proposal["head"], title)
    assert proposal["body"].startswith(f"{body}\n\n")
    assert here.show("b.txt", made["branch"]) == "later", "the end of the turn ships the rest"
    assert here.log(made["branch"], "%s") == title

    here.forge.change(checks="failed")
    words = 'tool pr_update {"title": "Greet people"}\ntool checks_read {}'
    second = here.tell(f"write c.txt more\n{words}", "pr")
    updated, checks = results(second)
    assert (updated["state"], updated["link"]) == ("pushed", proposal["link"])
    assert (checks["checks"], checks["excerpt"]) == ("failed", "tests (failed)")
    (proposal,) = here.proposals
    assert (proposal["title"], proposal["body"].partition("\n")[0]) == ("Greet people", body)


@pytest.mark.long
def test_a_post_is_made_once_although_the_bridge_dies(here: Studio) -> None:
    here.world.say("post", 'tool place_post {"text": "Halfway there."}\nhold go')
    here.world.platform.wait(lambda _: bool(posted(here, "post", "notice")))
    session = here.world.bridge.rows("select max(id) from session")[0][0]
    here.world.wait_for("working", "post")

    here.world.kill()
    here.world.bridge.wait(
        lambda: (
            here.world.bridge.rows("select state from turn where session = ? and cuts = 1", session)
            == [("prompted",)]
        ),
        "it never went on",
    )
    (here.workspace(session) / "go").touch()
    here.world.settle()

    assert [post.content["note"] for post in posted(here, "post", "notice")] == ["Halfway there."]
    assert here.world.turns("post")[-1].state == "done"


@pytest.mark.long
def test_a_question_is_asked_once_although_the_bridge_dies_while_it_waits(here: Studio) -> None:
    here.world.say("ask", f"tool ask_person {PORT}")
    here.world.platform.wait(lambda _: bool(posted(here, "ask", "ask")))

    here.world.kill()
    here.world.settle()

    (asked,) = posted(here, "ask", "ask")
    assert asked.content["text"] == "Which port?"
    words = "\n".join(post.content["text"] for post in here.world.turns("ask"))
    prompts = here.world.bridge.rows(
        "select prompt from turn t join session s on s.id = t.session"
        " join place p on p.id = s.place where p.name = 'ask'"
    )
    assert "9000" in words + "".join(prompt for (prompt,) in prompts)


def test_on_slack_a_question_has_buttons_and_a_file_is_uploaded(tmp_path: Path) -> None:
    with SlackWorld(tmp_path, entry={"mode": "free"}) as world:
        lines = (
            'tool place_post {"text": "I look at it, <!channel>."}',
            "write report.md All is well.",
            'tool place_post_file {"path": "report.md"}',
            f"tool ask_person {PORT}",
        )
        thread = world.say(f"{world.at('claude')} " + "\n".join(lines))
        asking = world.wait_button(thread, "9000")
        world.slack.click(world.ann, asking.ts, "9000")

        answer = world.wait_answer(thread, '"answer": "9000"')
        world.settle()

    assert '"by": "Ann"' in answer.words
    (notice,) = [each for each in world.answers(thread) if each.words.startswith("I look at it")]
    assert "<!channel>" not in notice.words
    (file,) = [world.slack.files[n] for each in world.answers(thread) for n in each.files]
    assert (file.title, file.content) == ("report.md", b"All is well.\n")


@pytest.mark.long
def test_on_github_checks_and_reviews_of_the_pull_request_are_read(tmp_path: Path) -> None:
    with PullWorld(tmp_path, entry={"mode": "free"}) as world:
        issue = world.issue("Please add it.", "Add a greeting")
        opened = '{"title": "Greet", "body": "For @tim, as asked."}'
        words = f"write greeting.txt hello\ntool pr_open {opened}\n"
        world.github.comment("ann", issue, f"@claude-bridge\n{words}")
        pull = world.opened()
        world.settled()
        assert (pull.title, "`@tim`" in (pull.body or "")) == ("Greet", True)

        world.github.review("ann", pull, "Too short.", state="changes_requested")
        world.settled()
        world.github.comment("ann", issue, "@claude-bridge\ntool checks_read {}")
        read = world.wait_for(issue, "Too short.")
        world.settled()

    assert '"review": "changes"' in read.body
