"""A conversation that understands: answers, rejections in words, who is asked, interruptions."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Agents, Visiting
from tests.support.bridge import demo
from tests.support.served import Site, let_go

# Clicks on what appears at the very moment it does, as a person does who meant another button.
HASTY = """() => {
  window.hasty = 0;
  new MutationObserver(() => {
    const button = document.querySelector(".ask[data-ask] .row button:last-child");
    if (!button || window.hasty) return;
    window.hasty += 1;
    button.dispatchEvent(new MouseEvent("click", { bubbles: true, detail: 1 }));
  }).observe(document.getElementById("log"), { childList: true, subtree: true });
}"""


@pytest.fixture(scope="module")
def agents() -> Agents:
    return {
        "claude": demo(display_name="Claude", default=True),
        "codex": demo(display_name="Codex"),
    }


@pytest.mark.long
def test_words_for_an_open_ask_reject_it_or_wait(visit: Visiting) -> None:
    window = visit().open()
    page = window.page
    box = page.get_by_label("Message", exact=True)
    window.say("write a.txt one\nsay went on with the old plan\nslow 60")
    ask = page.locator(".ask[data-ask]")
    expect(ask).to_contain_text("Claude wants to create a.txt")
    expect(ask).to_contain_text("anyone here can answer")
    assert ask.get_by_role("button").all_inner_texts() == [
        "Allow once",
        "Always allow editing `a.txt` in this thread",
        "Always allow all edits in the workspace of this thread",
        "Reject",
    ]
    expect(box).to_have_attribute("placeholder", "Answer Claude")
    assert window.findings() == []
    window.picture("ask-sentence")

    window.write("say use b.txt instead")
    page.keyboard.press("Enter")
    expect(page.locator("#instead")).to_contain_text("Claude is waiting for your answer.")
    expect(window.button("Reject and say this")).to_be_focused()
    window.picture("ask-words")
    page.keyboard.press("Escape")
    expect(box).to_be_focused()
    page.keyboard.press("Enter")
    window.button("Keep for later").click()
    expect(window.waiting).to_contain_text("Queued for Claude's next turn")
    window.button("Discard").click()
    expect(window.log).to_contain_text("Discarded.")

    window.write("say use c.txt instead")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    expect(window.turns.last).to_contain_text("use c.txt instead")
    expect(window.turns).to_have_count(2)
    expect(window.turns.first).to_contain_text("Interrupted by your next message.")
    window.settled()
    expect(window.log).not_to_contain_text("queue now")
    expect(box).not_to_have_attribute("placeholder", "Answer Claude")


@pytest.mark.slow
def test_an_answer_in_words_stands_in_its_card_before_what_it_caused(visit: Visiting) -> None:
    window = visit().open()
    window.say("ask What is your name?\nsay thank you")
    expect(window.page.locator(".ask[data-ask]")).to_contain_text("Claude asks:")

    window.say("My name is Kim")

    expect(window.turns).to_contain_text("thank you")
    window.settled()
    said = window.log.inner_text()
    assert said.count("My name is Kim") == 2, said  # in the card, and in the agent's own words
    assert said.index("operator: My name is Kim") < said.rindex("thank you")
    expect(window.page.locator("#log > article.msg:not(.turn)")).to_have_count(1)


@pytest.mark.slow
def test_a_hasty_click_answers_nothing_and_the_focus_goes_from_ask_to_ask_to_the_box(
    visit: Visiting,
) -> None:
    window = visit().open()
    page = window.page
    window.say("say hello")
    window.settled()
    page.evaluate(HASTY)
    window.say("write d.txt one\nwrite e.txt two")
    ask = page.locator(".ask[data-ask]")
    expect(ask).to_contain_text("d.txt")
    assert page.evaluate("() => window.hasty") == 1
    ask.get_by_role("button", name="Allow once").press("Enter")
    expect(ask).to_contain_text("e.txt")
    ask.get_by_role("button", name="Allow once").press("Enter")
    window.settled()
    expect(page.get_by_label("Message", exact=True)).to_be_focused()


@pytest.mark.slow
def test_the_agent_spoken_to_last_is_the_usual_one_and_others_are_a_click_away(
    visit: Visiting,
) -> None:
    window = visit().open()
    page = window.page
    window.say("@claude say I am the first")
    window.say("@codex say I am the second")
    expect(window.turns).to_have_count(2)
    expect(page.locator("#to option").first).to_have_text("Codex")
    window.say("say who is meant?")
    expect(window.turns).to_have_count(3)
    expect(window.turns.last.locator(".who")).to_contain_text("Codex")

    window.say("listen mention")
    expect(page.locator("#to option").first).to_have_text("Choose an agent")
    window.say("say and now?")
    choice = page.get_by_role("group", name="Who should answer?")
    assert choice.get_by_role("button").all_inner_texts() == ["Ask Claude", "Ask Codex", "Ask both"]
    assert window.findings() == []
    window.picture("who-answers")
    window.button("Ask both").click()

    expect(window.turns).to_have_count(5)
    expect(window.turns.nth(3)).to_contain_text("and now?")
    expect(window.turns.nth(4)).to_contain_text("and now?")
    expect(window.log).to_contain_text("operator asked Claude and Codex.")
    expect(choice).to_have_count(0)


@pytest.mark.slow
def test_a_message_sent_now_interrupts_and_says_so(bridge: Site, visit: Visiting) -> None:
    window = visit().open()
    window.say("hold old\nsay the old plan")
    expect(window.turns).to_have_count(1)
    window.say("say the new plan")
    window.button("Send now").click()

    expect(window.turns.last).to_contain_text("the new plan")
    window.settled()
    expect(window.turns.first).to_contain_text("Interrupted by your next message.")
    expect(window.log).not_to_contain_text("waiting")
    let_go(bridge.data_dir, "old")
