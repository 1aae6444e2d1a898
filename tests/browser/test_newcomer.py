"""A newcomer, with nothing configured: from the log-in link to an agent that works and obeys."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import Visiting
from tests.support.served import SECONDS, Served, let_go
from tests.support.window import Visit


@pytest.fixture(scope="module")
def bridge(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Start a bridge as a person does, with nothing configured."""
    with Served(tmp_path_factory.mktemp("bridge")) as started:
        yield started


@pytest.fixture(scope="module")
def link(bridge: Served) -> str:
    """Ask for a link as a person does."""
    return bridge.new_link()


@pytest.fixture(scope="module")
def cookies(browser: Browser, bridge: Served, link: str) -> Any:
    """Open the link and keep the cookies."""
    with closing(Visit(browser, bridge.url)) as visit:
        visit.sign_in(link)
        return visit.context.storage_state()


@pytest.mark.slow
def test_the_link_opens_the_page_once(
    browser: Browser, bridge: Served, visit: Visiting, link: str
) -> None:
    assert "demo (default)" in bridge.output.read_text()
    window = visit().open()
    expect(window.page.get_by_role("heading", name="What should we work on?")).to_be_visible()
    expect(window.page.locator(".card")).to_contain_text("Demo agent")

    with closing(Visit(browser, bridge.url, forgiven=("410",))) as stranger:
        again = stranger.open(link)

        expect(again.page.get_by_role("heading")).to_have_text("This log-in link no longer works")


@pytest.mark.long
def test_a_newcomer_tries_an_example_and_the_agent_answers(visit: Visiting) -> None:
    window = visit().open()

    window.button("say hello").click()
    window.page.keyboard.press("Enter")

    expect(window.turns).to_have_count(1)
    expect(window.turns.first).to_contain_text("hello")
    expect(window.page.locator(".thread.on")).to_contain_text("say hello")
    window.settled()


def test_a_newcomer_lets_the_agent_work_in_a_project_of_theirs(
    bridge: Served, visit: Visiting
) -> None:
    project = bridge.home / "projects" / "app"
    subprocess.run(["git", "init", "--quiet", project], check=True, timeout=SECONDS)
    window = visit().open()
    picker = window.page.get_by_role("dialog", name="Where to work")

    window.button("Works in: No repository").click()
    expect(picker).to_contain_text("owner/name")
    window.page.keyboard.type("~/projects/nothing")
    window.page.keyboard.press("Enter")
    expect(picker.get_by_role("alert")).to_contain_text("No such folder")
    window.picture("repository-picker")
    assert window.findings() == []
    window.page.get_by_role("combobox", name="Repository or folder").fill("~/projects/app/")
    picker.get_by_role("option", name="~/projects/app").click()
    expect(picker).to_be_hidden()
    window.page.keyboard.type("write notes.txt in my project")
    window.page.keyboard.press("Enter")
    window.button("Allow once").click()

    expect(window.turns).to_contain_text("Wrote notes.txt.")
    assert (project / "notes.txt").read_text() == "in my project\n"
    expect(window.page.locator("#state .repo-chip")).to_contain_text("app")
    expect(window.page.locator("#side")).to_contain_text(str(project))
    expect(window.page.locator("h1")).to_have_text("write notes.txt in my project")
    window.picture("repository-thread")
    again = visit().open()
    again.button("Works in: No repository").click()
    expect(again.page.get_by_role("option", name=str(project))).to_be_visible()
    again.page.keyboard.press("Enter")
    expect(again.button("Works in: app")).to_be_visible()
    expect(again.page.locator("#text")).to_be_focused()


@pytest.mark.long
def test_an_ask_is_answered_by_clicking(bridge: Served, visit: Visiting) -> None:
    window = visit().open()
    window.say("write notes.txt remember the milk")

    window.button("Allow once").click()

    expect(window.turns).to_contain_text("Wrote notes.txt.")
    expect(window.button("Allow once")).to_have_count(0)
    expect(window.page.locator(".tool")).to_contain_text("allowed by operator")
    expect(window.page.locator("#side")).to_contain_text("Write notes.txt")
    written = bridge.data_dir.glob("workspaces/*/notes.txt")
    assert [each.read_text() for each in written] == ["remember the milk\n"]


@pytest.mark.slow
def test_a_question_is_answered_by_choosing(visit: Visiting) -> None:
    window = visit().open()
    window.say("ask Which colour? | Red | Blue")

    window.button("Blue").click()

    expect(window.turns).to_contain_text("You chose Blue.")


@pytest.mark.slow
def test_stop_ends_a_running_turn_and_the_next_one_can_begin(visit: Visiting) -> None:
    window = visit().open()
    window.say("hold never")
    expect(window.turns).to_contain_text("Thought")

    window.button("Stop").click()

    expect(window.log).to_contain_text("Stopped")
    window.settled()
    window.say("say and on we go")
    expect(window.turns.last).to_contain_text("and on we go")


@pytest.mark.slow
def test_two_messages_sent_while_it_works_are_shown_and_join_the_next_turn(
    bridge: Served, visit: Visiting
) -> None:
    window = visit().open()
    window.say("hold go")
    expect(window.turns).to_contain_text("Thought")

    window.say("say first")
    expect(window.waiting).to_contain_text("say first")
    window.say("say second")
    expect(window.waiting).to_contain_text("say second")
    expect(window.waiting).to_have_count(1)
    expect(window.button("Send now")).to_be_visible()
    expect(window.button("Discard")).to_be_visible()
    let_go(bridge.data_dir, "go")

    expect(window.turns).to_have_count(2)
    expect(window.turns.last).to_contain_text("first")
    expect(window.turns.last).to_contain_text("second")
    expect(window.waiting).to_have_count(0)


@pytest.mark.slow
def test_what_waits_can_be_dropped_or_run_now(bridge: Served, visit: Visiting) -> None:
    window = visit().open()
    window.say("hold forever")
    expect(window.turns).to_contain_text("Thought")

    window.say("say dropped")
    window.button("Discard").click()
    expect(window.waiting).to_have_count(0)
    window.say("say at once")
    window.button("Send now").click()

    expect(window.turns.last).to_contain_text("at once")
    expect(window.turns).to_have_count(2)
    window.settled()


@pytest.mark.slow
def test_a_file_that_is_dropped_reaches_the_agent(visit: Visiting) -> None:
    window = visit().open()

    window.drop(note_txt="the words in the file")
    expect(window.page.locator("#chosen")).to_contain_text("note.txt")
    window.say('run cat "$PWD".files/*/note.txt')
    expect(window.page.locator(".files a")).to_have_text("note.txt")
    window.button("Allow once").click()

    expect(window.turns).to_contain_text("the words in the file")
    with window.page.expect_download() as download:
        window.page.locator(".files a").click()
    assert download.value.path().read_text() == "the words in the file"
