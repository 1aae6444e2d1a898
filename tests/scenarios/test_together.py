"""Agents together: a review in rounds, in Slack and on GitHub, and on the page; a panel; a race."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.company import Company, open_company, pulls, states
from tests.support.slack import SECONDS

pytestmark = pytest.mark.timeout(240)  # four turns one after another, also on a full machine


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    with open_company(tmp_path_factory.mktemp("company")) as company:
        yield company


def test_codex_reviews_what_claude_proposed_until_it_approves(company: Company) -> None:
    world, hub = company.world, company.hub
    thread = company.begin_work("write login.txt this is broken")
    pull = hub.pulls()[-1]
    assert pull.pull is not None

    world.say("!review codex", thread=thread)
    world.wait_told(thread, "codex approved")
    world.settle()

    [_] = [each for each in world.answers(thread, "codex") if "requested changes" in each.words]
    first, second = pull.pull.reviews
    assert (first.state, second.state) == ("changes_requested", "approved")
    assert first.user is second.user is hub.apps["codex"].bot
    [comment] = pull.pull.comments
    assert (comment.path, comment.line) == ("login.txt", 1)
    assert comment.body == "This is broken: this is broken"
    assert hub.file(pull, "login.txt") == "this is repaired"
    told = "\n".join(each.words for each in world.said(thread))
    for words in ("codex reviews", "codex requested changes", "Repaired what was broken."):
        assert words in told


@pytest.mark.long
def test_the_same_happens_on_the_page_without_slack(company: Company) -> None:
    hub, page = company.hub, company.bridge
    session = page.http.post(
        "/api/v1/sessions", json={"agent": "claude", "text": "write page.txt also broken"}
    ).json()
    page.wait(lambda: len(pulls(hub, "page.txt")) == 1, "nothing is proposed", SECONDS)
    company.rest(session["id"])

    company.say_on_page(session, "review codex")
    [pull] = pulls(hub, "page.txt")
    page.wait(lambda: states(pull)[-1:] == ["approved"], "it is not approved", SECONDS)
    company.settle()

    assert states(pull) == ["changes_requested", "approved"]
    told = company.read_page(session)
    for words in ("codex requested changes", "page.txt:1", "Repaired what was", "codex approved"):
        assert words in told


@pytest.mark.long
def test_people_decide_when_an_author_does_not_give_in(company: Company) -> None:
    world = company.world
    thread = company.begin_work("write stubborn.txt it stays broken")
    world.say("!review codex", thread=thread)
    world.wait_told(thread, "Please decide")
    world.settle()

    [pull] = pulls(company.hub, "stubborn.txt")
    assert states(pull) == ["changes_requested"] * 3
    told = [each.words for each in world.said(thread)]
    assert "after 3 rounds" in told[-1]
    assert "stubborn.txt:1" in told[-1]
    assert sum("Please decide" in each for each in told) == 1


@pytest.mark.long
def test_a_message_to_the_author_takes_over(company: Company) -> None:
    world = company.world
    thread = company.begin_work("write over.txt broken\nwrite hold.txt broken")
    world.say("!review codex", thread=thread)
    world.wait_told(thread, "requested changes")
    world.say(f"{world.at('claude')} say never mind", thread=thread)
    world.wait_told(thread, "Ann took over")
    world.settle()

    [pull] = pulls(company.hub, "over.txt")
    assert "approved" not in states(pull)


@pytest.mark.long
@pytest.mark.parametrize("words", ["!review codex", "!review claude"])
def test_there_is_nothing_to_review_where_no_other_agent_has_pushed(
    company: Company, words: str
) -> None:
    world = company.world
    thread = world.say(f"{world.at('claude')} say hello")
    world.wait_answer(thread, "hello")

    world.say(words, thread=thread)

    world.wait_told(thread, "nothing here that")


@pytest.mark.long
def test_a_stop_in_the_place_ends_the_review(company: Company) -> None:
    world = company.world
    thread = company.begin_work("write slow.txt broken\nwrite wait.txt broken")
    world.say("!review codex", thread=thread)
    reviewing = "select count(*) from turn where state = 'prompted'"
    bridge = company.bridge
    bridge.wait(lambda: bridge.rows(reviewing) == [(1,)], "it does not review", SECONDS)

    world.say("!stop", thread=thread)

    world.wait_told(thread, "The review ended: the turn of codex was stopped.")
    world.settle()
    [pull] = pulls(company.hub, "slow.txt")
    assert states(pull) == []


@pytest.mark.long
def test_an_agent_has_its_own_work_reviewed(company: Company) -> None:
    world = company.world
    words = """write tool.txt broken
run git add -A && git commit -qm Work && git push -q
tool review {"agent": "codex", "notes": "Mind the file."}"""
    thread = world.say(f"{world.at('claude')} {words}")

    world.wait_told(thread, "codex approved")
    world.settle()

    [pull] = pulls(company.hub, "tool.txt")
    assert states(pull)[-1] == "approved"
    assert company.hub.file(pull, "tool.txt") == "repaired"
    assert any("Mind the file." in each for each in company.prompts("Review the work of"))


@pytest.mark.long
def test_a_panel_shows_the_answers_side_by_side_and_one_agent_sums_up(company: Company) -> None:
    world = company.world
    thread = world.say(f"{world.at('codex')} panel claude codex: say It depends.")
    world.wait_told(thread, "answer the question")
    world.wait(lambda: any("*claude*" in each.words for each in world.said(thread)))
    company.bridge.wait(
        lambda: len(company.prompts("Several agents answered")) == 1, "no one sums up", SECONDS
    )
    world.settle()

    [side_by_side] = [each.words for each in world.said(thread) if "*claude*" in each.words]
    assert side_by_side.count("It depends.") == 2
    assert "*codex*" in side_by_side
    [asked] = company.prompts("Several agents answered")
    assert asked.count("It depends.") >= 2
    assert '<data from="what came with the message">' in asked
    assert asked.startswith("[codex on slack")  # the bridge does not speak in a person's name


@pytest.mark.long
def test_people_pick_which_work_of_a_race_is_shipped(company: Company) -> None:
    world = company.world
    before = len(company.hub.pulls())
    thread = world.say(f"{world.at('claude')} race claude codex: write raced.txt by an agent")
    question = world.wait_button(thread, "codex")
    assert len(company.hub.pulls()) == before
    assert question.words.count("in 1 file") == 2

    world.slack.click(world.bob, question.ts, "codex")
    world.wait_told(thread, "The work of codex is shipped")
    world.settle()

    [pull] = pulls(company.hub, "raced.txt")
    assert pull.user is company.hub.apps["codex"].bot
    assert company.hub.file(pull, "raced.txt") == "by an agent"
