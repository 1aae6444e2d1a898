"""What people are asked to allow, in a real browser: every character of it can be read."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from app.model.text import conceal
from tests.browser.conftest import Agents, Visiting
from tests.support.plays import NEW, OLD, call, player, put
from tests.support.variants import quick

HOSTILE = (
    "rm -rf build/*old* pkg/__init__.py `id` <b>x</b> </pre> &lt; \\u{202E} @claude\n"
    "cat a\u202etxt.hs \u200b\x1b[2K\r  # \u05d0/\u05d1\t "
)
LONG = "echo " + "y" * 12_000 + "; rm -rf /"


def wanted(number: int, title: str, kind: str, **more: Any) -> list[dict[str, Any]]:
    asked = call(number, title, kind, status="pending", **more)
    return [{"ask": {name: value for name, value in asked.items() if name != "sessionUpdate"}}]


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Agents:
    folder = tmp_path_factory.mktemp("plays")
    diff = {"type": "diff", "path": "auth/login.py", "oldText": OLD, "newText": NEW}
    put(folder, "hostile", wanted(1, HOSTILE, "execute", rawInput={"command": HOSTILE}))
    put(folder, "edit", wanted(2, "Write login.py", "edit", content=[diff]))
    put(folder, "long", wanted(3, "Say it", "execute", rawInput={"command": LONG}))
    return {"claude": player(folder, display_name="Claude")}


@pytest.mark.long
@pytest.mark.parametrize(("play", "command"), quick(1, [("hostile", HOSTILE), ("long", LONG)]))
def test_a_command_is_read_to_the_letter(visit: Visiting, play: str, command: str) -> None:
    window = visit().open()
    window.say(play)
    question = window.page.locator(".ask")
    expect(question.locator("button").first).to_be_visible()
    window.picture(f"ask-{play}")

    assert conceal(question.locator("pre.exact").inner_text()) == command
    question.get_by_role("button", name="Reject").click()
    window.settled()


@pytest.mark.slow
def test_an_edit_shows_its_counts_and_its_lines(visit: Visiting) -> None:
    window = visit().open()
    window.say("edit")
    question = window.page.locator(".ask")
    expect(question).to_contain_text("Claude wants to edit auth/login.py +1\N{MINUS SIGN}2")
    expect(question.locator("p.fact")).to_have_count(0)
    window.picture("ask-edit")
    assert window.findings() == []

    lines = question.locator("pre.exact span").all_inner_texts()
    assert '-    response.set_cookie("next", target)' in [line.rstrip("\n") for line in lines]
    question.get_by_role("button", name="Reject").click()
    window.settled()
