"""Signing in and out in a real browser, which keeps cookies and names its origin as it likes."""

from __future__ import annotations

from contextlib import closing

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import Agents, Visiting
from tests.support.bridge import demo
from tests.support.served import Forked, Site
from tests.support.window import Visit


@pytest.fixture(scope="module")
def agents() -> Agents:
    return {"demo": demo()}


@pytest.mark.slow
def test_a_message_is_sent_without_any_script(visit: Visiting) -> None:
    window = visit(scripts=False).open()

    window.write("say no script needed")
    window.button("Send").click()

    expect(window.log).to_contain_text("say no script needed")


def test_the_page_works_at_the_plain_address_too_and_a_link_works_once(
    browser: Browser, bridge: Forked
) -> None:
    link = bridge.http.post("/api/v1/login-links").json()["plain"]
    with closing(Visit(browser, link.partition("/login/")[0], forgiven=("410",))) as person:
        window = person.open(link)
        expect(window.page.get_by_role("main")).to_contain_text("at most for 12 hours")
        person.sign_in(link)
        window.page.goto("/")
        window.say("say hello there")
        expect(window.turns).to_contain_text("hello there")

        again = person.open(link).page
        expect(again.get_by_role("heading")).to_have_text("This log-in link no longer works")


@pytest.mark.long
def test_signing_out_ends_it(visit: Visiting, browser: Browser, bridge: Site) -> None:
    with closing(Visit(browser, bridge.url, forgiven=("401",))) as other:
        other.sign_in(bridge.new_link())
        window = other.open()

        window.button("Sign out").click()

        expect(window.page.get_by_role("heading")).to_have_text("You are signed out")
        expect(other.open().page.get_by_role("heading")).to_have_text("You are not signed in")
    expect(visit().open().button("Sign out")).to_be_visible()


@pytest.mark.slow
def test_a_page_whose_log_in_was_ended_says_so_by_itself(bridge: Site, browser: Browser) -> None:
    # A stream that is refused is an error of the console, and what this story is about.
    with closing(Visit(browser, bridge.url, forgiven=("401",))) as person:
        window, other = person.sign_in(bridge.new_link()), person.open()

        other.button("Sign out").click()

        expect(other.page.get_by_role("heading")).to_have_text("You are signed out")
        expect(window.page.get_by_role("heading", name="You are not signed in")).to_be_visible()
