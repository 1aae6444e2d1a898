"""Blocks as HTML: well formed, labelled, and nothing in them but what was said."""

from __future__ import annotations

import pytest

from app.core.keys import PlaceKey, SessionKey
from app.core.types import Entry, Session, SessionState, Thread
from app.server.page.view import render, views
from app.server.page.view.views import Agent, Cast, Member, Page, Place, Waiting
from tests.support.document import Element, parse
from tests.support.threads import CAST, OPTIONS, Story, shown

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(1)>\u202e'


def elements(html: str, tag: str) -> list[Element]:
    return [each for each in parse(html).elements() if each.tag == tag]


def test_whatever_an_agent_or_a_person_writes_stays_words() -> None:
    story = Story().said(
        HOSTILE,
        "claude",
        speaker=HOSTILE,
        files=[{"name": HOSTILE, "media_type": "image/png", "url": f"aa/{HOSTILE}"}],
    )
    story.row("text", HOSTILE).row("thought", HOSTILE)
    story.row("plan", steps=[{"text": HOSTILE, "status": HOSTILE}])
    diff = {"path": HOSTILE, "old": HOSTILE, "new": f"{HOSTILE}\n{HOSTILE}"}
    story.tool(
        "e",
        HOSTILE,
        kind=HOSTILE,
        title=HOSTILE,
        input={HOSTILE: HOSTILE},
        output=HOSTILE,
        diffs=[diff],
        locations=[HOSTILE],
    )
    story.tool("r", title=HOSTILE, input=HOSTILE).tool("r2", title=HOSTILE)
    option = {"id": HOSTILE, "name": HOSTILE, "kind": HOSTILE}
    story.ask(1, HOSTILE, options=[option]).row("ask", HOSTILE, ask=2, state="answered")
    story.row("notice", HOSTILE).row("notice", HOSTILE, turn=None, silence=HOSTILE)

    made = list(parse(shown(story.rows)).elements())

    assert {each.tag for each in made} & {"script", "img", "svg", "iframe", "style"} == set()
    names = {name for each in made for name in each.attributes}
    assert not any(name.startswith("on") or name == "style" for name in names)
    hrefs = [each.attributes.get("href") or "" for each in made if each.tag == "a"]
    assert all(href.startswith(("http", "/uploads/")) for href in hrefs)


def test_an_open_ask_has_a_button_per_option_and_the_first_allowing_one_stands_out() -> None:
    buttons = elements(shown(Story().ask(7).rows), "button")

    assert [button.text for button in buttons] == ["Allow once", "Reject"]
    assert [button.attributes["class"] for button in buttons] == ["main", ""]
    assert {button.attributes["data-post"] for button in buttons} == {"/asks/7"}
    assert [button.attributes["data-option"] for button in buttons] == [o["id"] for o in OPTIONS]


def test_among_mere_choices_none_stands_out() -> None:
    choices = [{"id": str(n), "name": f"Way {n}", "kind": "allow_once"} for n in range(3)]

    buttons = elements(shown(Story().ask(7, options=choices).rows), "button")

    assert [button.attributes["class"] for button in buttons] == ["", "", ""]


def test_a_question_that_any_words_answer_says_where_to_write_them() -> None:
    assert "in your own words" in shown(Story().ask(7, free_text=True).rows)
    assert "in your own words" not in shown(Story().ask(7).rows)


def test_an_ask_shows_what_it_is_about_as_it_is() -> None:
    made = shown(Story().ask(7, about="a.py:1: <b>no</b>\nsecond line").rows)

    (quoted,) = elements(made, "pre")
    assert quoted.text == "a.py:1: <b>no</b>\nsecond line"


def test_the_work_of_every_agent_is_one_click_away() -> None:
    links = elements(render.place_panels(place(), CAST)["side"], "a")

    assert "/workspace/" in "".join(each.attributes["href"] or "" for each in links)


def test_an_answered_ask_has_no_buttons_and_says_who_decided() -> None:
    made = shown(Story().ask(7).answer(7).rows)

    assert elements(made, "button") == []
    assert "Ann: Allow once" in parse(made).text


def test_what_was_decided_stands_on_the_card_of_the_call_and_only_there() -> None:
    story = Story().tool("a", "pending", kind="edit").ask(7, call="a").answer(7)

    made = parse(shown(story.tool("a", "completed", kind="edit").rows))

    assert made.text.count("Ann: Allow once") == 1


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("pending", "waiting"),
        ("in_progress", "running"),
        ("failed", "failed"),
        ("completed", "not"),
    ],
)
def test_a_card_says_how_far_its_call_is(status: str, words: str) -> None:
    (summary,) = elements(shown(Story().tool("a", status, kind="edit").rows), "summary")

    assert words in summary.text


def test_a_long_output_can_be_shown_whole() -> None:
    rows = Story().tool("a", output="\n".join(map(str, range(500)))).rows

    (button,) = elements(shown(rows), "button")

    assert button.attributes["data-all"] == "/whole/t/web/t1?row=1"
    assert "440 more lines" in button.text


def test_few_changes_are_shown_at_once_and_many_are_folded() -> None:
    few = {"path": "a.py", "old": "a\n", "new": "b\n"}
    many = {"path": "a.py", "old": None, "new": "b\n" * 300}

    cards = [
        elements(shown(Story().tool("a", kind="edit", diffs=[diff]).rows), "details")[0]
        for diff in (few, many)
    ]

    assert ["open" in card.attributes for card in cards] == [True, False]


def test_a_failed_turn_stands_out() -> None:
    made = shown(Story().row("notice", "It broke.", end="failed").rows)

    assert 'class="note bad"' in made


def test_a_message_says_whom_it_went_to_unless_it_names_them() -> None:
    assert "to Claude" in parse(shown(Story().said("hello", "claude").rows)).text
    assert "to Claude" not in parse(shown(Story().said("@claude hello", "claude").rows)).text


def test_a_picture_is_shown_and_another_file_is_offered() -> None:
    files = [
        {"name": "a b.png", "media_type": "image/png", "url": "0a1b/a b.png"},
        {"name": "x.svg", "media_type": "image/svg+xml", "url": "0a1b/x.svg"},
        {"name": "elsewhere", "media_type": "image/png", "url": "https://evil.example/x.png"},
    ]

    made = shown(Story().said("see", files=files).rows)

    (picture,) = elements(made, "img")
    assert picture.attributes["src"] == "/uploads/0a1b/a%20b.png"
    links = [each.attributes["href"] for each in elements(made, "a")]
    assert links == ["/uploads/0a1b/a%20b.png", "/uploads/0a1b/x.svg"]


def test_what_an_agent_made_is_shown_below_what_it_did() -> None:
    files = [
        {"name": "plot.png", "media_type": "image/png", "url": "0a1b/plot.png"},
        {"name": "report.md", "media_type": "text/markdown", "url": "0a1c/report.md"},
    ]

    made = shown(Story().said("draw", "claude").row("notice", "Made them.", files=files).rows)

    (picture,) = elements(made, "img")
    assert picture.attributes["src"] == "/uploads/0a1b/plot.png"
    links = [each.attributes["href"] for each in elements(made, "a")]
    assert links == ["/uploads/0a1b/plot.png", "/uploads/0a1c/report.md"]


def test_agents_whose_names_begin_alike_get_two_letters() -> None:
    cast = Cast.of([Agent("claude", "Claude"), Agent("codex", "Codex"), Agent("gem", "Gemini")])

    assert [agent.letters for agent in cast.agents.values()] == ["Cl", "Co", "G"]
    assert cast["gone"].title == "gone"
    assert cast["gone"].colour is None


KEY = PlaceKey("web", "t1")


def place(**more: object) -> Place:
    member = Member(1, CAST["claude"], "working", stoppable=True)
    wait = Waiting(1, CAST["claude"], ((12, "Bob", HOSTILE), (14, "Ann", "and this")))
    values = {"members": (member,), "waiting": (wait,), "untagged": ("claude",), **more}
    return Place(key=KEY, title=HOSTILE, **values)  # type: ignore[arg-type]


def test_the_state_shows_who_works_what_waits_and_how_to_stop_it() -> None:
    panels = render.place_panels(place(), CAST)

    (stop,) = elements(panels["state"], "button")
    now, drop = elements(panels["status"], "button")
    (waiting,) = [e for e in elements(panels["status"], "div") if "data-messages" in e.attributes]
    assert stop.attributes["data-post"] == "/stop/t/web/t1"
    assert now.attributes["data-post"] == "/queue/1/now"
    assert drop.attributes["data-post"] == "/queue/1/drop"
    assert (waiting.attributes["data-messages"] or "").split() == ["m12", "m14"]
    assert "<script" not in "".join(panels.values())


def test_an_agent_that_its_provider_holds_back_is_shown_as_such_and_can_be_stopped() -> None:
    session = Session(1, SessionKey("web", "t1", "claude"), KEY, SessionState.LIMITED)
    member = Member(1, CAST["claude"], "limited", stoppable=views.stoppable(session))
    limited = place(members=(member,), waiting=())

    panels = render.place_panels(limited, CAST)

    assert limited.dot == "limit"
    assert "is waiting for its provider" in panels["status"]
    assert [each.text for each in elements(panels["state"], "button")] == ["Stop"]


def test_nobody_is_meant_where_several_are_and_none_was_named() -> None:
    to = render.place_panels(place(untagged=()), CAST)["to"]

    assert elements(to, "option")[0].text == "No one unless mentioned"


def thread(name: str, state: SessionState, *, held: bool = False, service: str = "web") -> Thread:
    key = PlaceKey(service, name)
    session = Session(1, SessionKey(service, name, "claude"), key, state, held=held)
    return Thread(key, f"Title {name}", "", Entry("text", "last `words`\n\nhere"), (session,))


def test_threads_that_need_somebody_come_first() -> None:
    threads = [
        thread("a", SessionState.IDLE),
        thread("b", SessionState.WORKING, service="slack"),
        thread("c", SessionState.WAITING),
        thread("d", SessionState.QUEUED, held=True),
        thread("e", SessionState.LIMITED),
    ]

    listed = views.thread_list(threads, CAST, current=PlaceKey("web", "c"), more="/?threads=5")
    made = render.threads_panel(listed, CAST)

    assert [title for title, _ in listed.groups] == [
        "Needs you",
        "Working",
        "Waiting for a limit",
        "Earlier",
    ]
    assert [line.path for line in listed.groups[0][1]] == ["/t/web/c", "/t/web/d"]
    assert listed.groups[1][1][0].words == "Slack · Claude · last words here"
    assert elements(made, "a")[0].attributes["aria-current"] == "page"
    assert elements(made, "a")[-1].attributes["href"] == "/?threads=5"


@pytest.mark.parametrize("shown_place", [None, place()])
def test_a_whole_page_is_well_formed_and_runs_nothing_of_its_own(shown_place: Place | None) -> None:
    page = Page(
        cast=CAST,
        threads=views.thread_list([thread("a", SessionState.IDLE)], CAST),
        csrf='a"b',
        visitor=HOSTILE,
        assets={
            name: f"/static/{name}" for name in ("icon.svg", "page.css", "live.js", "composer.js")
        },
        place=shown_place,
        log=shown(Story().said("hi", "claude").row("text", "hello").rows),
        events="/events",
        missing=(views.Missing("Gemini", "npm i"),),
        examples=("say hello",),
        picked="claude",
    )

    made = list(parse(render.page(page).partition(">")[2]).elements())

    scripts = [each for each in made if each.tag == "script"]
    assert all(each.attributes.get("src") and not each.text.strip() for each in scripts)
    assert not any(name.startswith("on") or name == "style" for e in made for name in e.attributes)
    ids = [each.id for each in made if each.id]
    assert len(ids) == len(set(ids))


def test_tokens_are_short() -> None:
    assert views.tokens(18_240, 200_000) == "18.2k of 200k"
    assert views.tokens(999, None) == "999"
    assert views.tokens(None, 5) == ""
    assert views.tokens(1_500_000, 2_000_000) == "1.5M of 2M"
