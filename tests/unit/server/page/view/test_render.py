"""Blocks as HTML: well formed, labelled, and nothing in them but what was said."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import pytest

from app.model.conversations import headline, title_of
from app.model.keys import PlaceKey, SessionKey
from app.model.types import Entry, Session, SessionState, Thread
from app.model.updates import AskView, ShownFact
from app.server.page import assets
from app.server.page.queries import decisions_of as decisions
from app.server.page.view import listing, render
from app.server.page.view.place import Doing, PageView, Place, Steps, ThreadAgent, Waiting, tokens
from app.server.page.view.roster import AgentView, PageRoster
from app.server.page.view.thread import Fold
from tests.support.document import Element, parse
from tests.support.threads import OPTIONS, ROSTER, Story, fold, log, shown

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
    assert all(
        href.startswith(("http", "/uploads/", "/turns/", "/record?", "/fork/")) for href in hrefs
    )


def test_an_open_ask_has_a_button_per_option_and_the_first_allowing_one_stands_out() -> None:
    buttons = options(shown(Story().ask(7).rows))

    assert [button.text for button in buttons] == ["Allow once", "Reject"]
    assert [button.attributes["class"] for button in buttons] == ["main", ""]
    assert {button.attributes["data-post"] for button in buttons} == {"/asks/7"}
    assert [button.attributes["data-option"] for button in buttons] == [o["id"] for o in OPTIONS]


def test_among_mere_choices_none_stands_out() -> None:
    choices = [{"id": str(n), "name": f"Way {n}", "kind": "allow_once"} for n in range(3)]

    buttons = options(shown(Story().ask(7, options=choices).rows))

    assert [button.attributes["class"] for button in buttons] == ["", "", ""]


def test_a_question_that_any_words_answer_says_where_to_write_them() -> None:
    assert "in your own words" in shown(Story().ask(7, free_text=True).rows)
    assert "in your own words" not in shown(Story().ask(7).rows)


def test_an_ask_shows_what_it_is_about_as_it_is() -> None:
    made = shown(Story().ask(7, about="a.py:1: <b>no</b>\nsecond line").rows)

    (quoted,) = elements(made, "pre")
    assert quoted.text == "a.py:1: <b>no</b>\nsecond line"


def test_the_work_of_every_agent_is_one_click_away() -> None:
    links = elements(render.place_panels(place(), ROSTER)["side"], "a")

    assert "/workspace/" in "".join(each.attributes["href"] or "" for each in links)


@pytest.mark.parametrize("title", ["pytest -q a", "`pytest -q a`", "Run `pytest -q a`"])
def test_an_ask_about_a_command_shows_it_once(title: str) -> None:
    view = asdict(AskView(title, (ShownFact("command", "pytest -q a"),)))

    made = shown(Story().ask(7, title, tool_kind="execute", view=view).rows)

    assert parse(made).text.count("pytest -q a") == 1
    assert "Claude wants to run a command" in parse(made).text


def test_an_answered_ask_has_no_buttons_and_says_who_decided() -> None:
    made = shown(Story().ask(7).answer(7).rows)

    assert options(made) == []
    assert "Ann: Allow once" in parse(made).text


def options(made: str) -> list[Element]:
    return [each for each in elements(made, "button") if "data-option" in each.attributes]


HOSTILE_TITLES = (
    r"rm -rf build/*old* dist/*new* pkg/__init__.py",
    r"grep -e '\(a\)' _b_ `c` ~~d~~",
    "<img src=x onerror=alert(1)> <b>bold</b>",
    "[ok](https://evil.example) # title",
)


@pytest.mark.parametrize("title", HOSTILE_TITLES)
def test_the_titles_of_calls_asks_and_decisions_are_shown_word_for_word(title: str) -> None:
    denied = {"how": "rule", "rule": "deny kind execute", "allowed": False}
    story = Story().tool("a", "pending", kind="execute", title=title).ask(7, title, call="b")
    story.answer(7).tool("c", "failed", kind="execute", title=title, decided=denied)
    folded = fold(story.tool("d", title=title).rows)

    made = parse(log(folded))
    decided = [each.title for each in decisions(folded)]

    assert made.text.count(title) == 4
    assert decided == [title, title]
    panels = render.place_panels(place(decisions=decisions(folded)), ROSTER)
    assert parse(panels["side"]).text.count(title) == 2


@pytest.mark.parametrize(
    ("title", "shown_as"),
    [
        ("`pytest -q`", "<code>pytest -q</code>"),
        ("Run `a*b*`", "Run <code>a*b*</code>"),
        ("echo `date`", "echo `date`"),
        ("`a` && `b`", "`a` &amp;&amp; `b`"),
    ],
)
def test_a_command_in_a_title_is_code_and_keeps_its_own_backticks(
    title: str, shown_as: str
) -> None:
    made = shown(Story().tool("a", kind="execute", title=title).rows)

    assert f'<bdi class="title">{shown_as}</bdi>' in made


@pytest.mark.parametrize(
    ("output", "result"),
    [
        ("..F\n2 failed, 10 passed in 1.84s\n", "2 failed, 10 passed in 1.84s"),
        ("\x1b[32m==== 3 passed ====\x1b[0m", "3 passed"),
        ("x" * 2_000, ""),
        ("", ""),
    ],
)
def test_a_command_shows_the_line_that_it_ended_with(output: str, result: str) -> None:
    ended = shown(Story().tool("a", "failed", kind="execute", output=output).rows)
    running = shown(Story().tool("a", "in_progress", kind="execute", output=output).rows)

    (line,) = elements(ended, "summary")
    assert [each.text for each in line.elements() if each.attributes.get("class") == "last"] == (
        [result] if result else []
    )
    assert 'class="last"' not in running


def test_what_was_pushed_ends_a_turn_as_a_card_and_links_are_short() -> None:
    link = "https://github.com/acme/app/pull/57"
    pushed = {"branch": "b", "link": link, "number": 57, "files": 2, "added": 9, "removed": 1}
    story = Story().row("notice", f"Pushed to `b`: {link}", pushed=pushed, note="`x` was not sent.")

    made = parse(shown(story.row("notice", f"Merged: {link}", turn=None).rows))

    assert "Pull request #57 +9\N{MINUS SIGN}1 in 2 files" in " ".join(made.text.split())
    assert "x was not sent." in made.text
    assert "Pushed to" not in made.text
    links = {e.text: e.attributes["href"] for e in made.elements() if e.tag == "a"}
    assert str(links["View changes"]).startswith("/workspace/")
    assert links["Open pull request"] == links["#57"] == link


def test_a_title_cannot_hide_or_reorder_its_letters() -> None:
    title = "rm \u202egnp.exe\u202c \u200bx"
    story = Story().tool("a", "pending", kind="execute", title=title).ask(7, title, call="b")
    folded = fold(story.answer(7).rows)

    made = log(folded) + render.place_panels(place(decisions=decisions(folded)), ROSTER)["side"]

    assert made.count(r"rm \u{202E}gnp.exe\u{202C} \u{200B}x") == 3
    assert not set("\u202e\u202c\u200b") & set(made)


def test_what_was_decided_stands_in_the_card_of_the_call_and_only_there() -> None:
    story = Story().tool("a", "pending", kind="edit").ask(7, call="a").answer(7)

    made = parse(shown(story.tool("a", "completed", kind="edit").rows))

    assert made.text.count("Ann: Allow once") == 1


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("pending", "waiting"),
        ("in_progress", "running"),
        ("failed", "failed"),
        ("completed", "done"),
    ],
)
def test_a_card_says_how_far_its_call_is(status: str, words: str) -> None:
    (summary,) = elements(shown(Story().tool("a", status, kind="edit").rows), "summary")

    assert words in summary.text


def test_a_card_ends_with_how_long_its_call_took_since_it_was_allowed() -> None:
    story = Story().tool("a", "pending", kind="edit").ask(7, call="a").row("text", "…").answer(7)
    story.row("usage", used=1).row("usage", used=2).tool("a", "failed", kind="edit")

    (summary,) = elements(shown(story.rows), "summary")

    assert "3s" in summary.text
    assert "failed" in summary.text


@pytest.mark.parametrize(
    ("decided", "words"),
    [
        ({"how": "person", "who": "Kim", "allowed": False}, "Rejected by Kim"),
        ({"how": "rule", "rule": "deny kind edit", "allowed": False}, "Rejected by a rule"),
        ({"how": "unanswered", "allowed": False}, "Nobody answered"),
    ],
)
def test_a_call_that_was_rejected_has_not_failed(decided: dict[str, Any], words: str) -> None:
    made = shown(Story().tool("a", "failed", kind="edit", decided=decided).rows)

    (summary,) = elements(made, "summary")
    assert words in summary.text
    assert "failed" not in summary.text
    assert 'class="cross"' not in made


def test_who_allowed_a_call_is_said_on_hover_and_inside_and_not_in_its_line() -> None:
    decided = {"how": "rule", "rule": "allow kind edit", "allowed": True}

    made = shown(Story().tool("a", kind="edit", decided=decided).rows)

    (summary,) = elements(made, "summary")
    assert "rule" not in summary.text
    assert 'title="allowed by rule `allow kind edit`"' in made
    assert '<p class="decided"><bdi>allowed by rule `allow kind edit`' in made


def test_a_long_output_can_be_shown_whole() -> None:
    rows = Story().tool("a", output="\n".join(map(str, range(500)))).rows

    (button,) = [each for each in elements(shown(rows), "button") if "data-all" in each.attributes]

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

    assert 'class="failure"' in made


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
    assert links == ["/fork/t/web/t1?after=1", "/uploads/0a1b/a%20b.png", "/uploads/0a1b/x.svg"]


def test_what_an_agent_made_is_shown_below_what_it_did() -> None:
    files = [
        {"name": "plot.png", "media_type": "image/png", "url": "0a1b/plot.png"},
        {"name": "report.md", "media_type": "text/markdown", "url": "0a1c/report.md"},
    ]

    made = shown(Story().said("draw", "claude").row("notice", "Made them.", files=files).rows)

    assert "Made" not in made
    (picture,) = elements(made, "img")
    assert picture.attributes["src"] == "/uploads/0a1b/plot.png"
    links = [each.attributes["href"] for each in elements(made, "a")]
    uploads = [link for link in links if link and link.startswith("/uploads/")]
    assert uploads == ["/uploads/0a1b/plot.png", "/uploads/0a1c/report.md"]


def test_a_picture_is_shown_where_the_text_names_it() -> None:
    def picture(name: str, size: int) -> dict[str, Any]:
        return {"name": name, "media_type": "image/png", "url": f"0a1b/{name}", "size": size}

    text = (
        "Before:\n[image: image/png, 2.0 KiB]\nAfter:\n[image: image/png, 1.0 KiB]\nDone.\n"
        "[file: file:///w/a.csv]"
    )
    table = {"name": "a.csv", "media_type": "text/csv", "url": "0a1c/a.csv", "size": 8}
    files = [picture("after.png", 1024), picture("before.png", 2048), table]

    made = shown(Story().row("text", text).row("notice", "Made them.", files=files).rows)

    assert [each.attributes["alt"] for each in elements(made, "img")] == ["before.png", "after.png"]
    order = [made.index(each) for each in ("Before:", "before.png", "After:", "after.png", "Done.")]
    assert order == sorted(order)
    assert not [words for words in ("[image", "[file", "Made") if words in made]
    (card,) = [e for e in elements(made, "a") if e.attributes.get("class") == "file"]
    assert card.text == "a.csv8 bytes"


def test_agents_whose_names_begin_alike_get_two_letters() -> None:
    roster = PageRoster.of(
        [
            AgentView("claude", "claude", "Claude"),
            AgentView("codex", "codex", "Codex"),
            AgentView("gem", "gem", "Gemini"),
        ]
    )

    assert [agent.letters for agent in roster.agents.values()] == ["Cl", "Co", "G"]
    assert roster["gone"].title == "gone"
    assert roster["gone"].colour is None


HIDING = PageRoster.of(
    [
        AgentView("claude", "claude", "Claude", default=True),
        AgentView("fox", "fox", "Foxy", emoji="🦊"),
        AgentView("quiet", "quiet", "Quiet", visible=False),
    ]
)


def new_thread(picked: str) -> str:
    page = PageView(
        roster=HIDING,
        threads=listing.thread_list([], HIDING),
        csrf="c",
        visitor="Ann",
        role="admin",
        assets={name: f"/static/{name}" for name in assets.assets()},
        picked=picked,
    )
    return render.page(page)


def test_a_hidden_agent_is_offered_nowhere_and_can_be_picked_by_its_name() -> None:
    renderer = render.Renderer(HIDING, "/t/web/t1")

    assert "quiet" not in new_thread("claude").lower()
    assert '<option value="quiet" selected>Quiet</option>' in new_thread("quiet")
    assert [each.name for each in renderer.others("claude")] == ["fox"]
    assert [each.name for each in renderer.among(("quiet", "fox"))] == ["fox"]
    panels = render.place_panels(place(waiting=()), HIDING)
    assert "quiet" not in "".join(panels.values()).lower()
    assert HIDING.names.mentioned("@quiet, please") == ("quiet",)


def test_an_emoji_is_shown_with_its_agent_in_cards_choices_header_and_speakers() -> None:
    page = new_thread("claude")
    fox = HIDING["fox"]
    story = Story().said("hi", "fox").row("text", "yip")
    folded = Fold({1: "fox"}.__getitem__)
    folded.add(story.rows)
    said = "".join(map(render.Renderer(HIDING, "/t/web/t1").block, folded.blocks))
    panels = render.place_panels(
        place(members=(ThreadAgent(1, fox, "idle", stoppable=False),)), HIDING
    )

    assert fox.letters == "🦊"
    assert ">🦊 Foxy</option>" in page
    assert "New thread with 🦊 Foxy" in page
    assert [e.text for e in elements(said, "div") if e.attributes.get("class") == "face c1"] == [
        "🦊"
    ]
    assert "<span>🦊 Foxy</span>" in panels["state"]


KEY = PlaceKey("web", "t1")


def place(**more: object) -> Place:
    member = ThreadAgent(1, ROSTER["claude"], "working", stoppable=True)
    wait = Waiting(1, ROSTER["claude"], ((12, "Bob", HOSTILE), (14, "Ann", "and this")))
    values = {"members": (member,), "waiting": (wait,), "untagged": ("claude",), **more}
    return Place(key=KEY, title=HOSTILE, **values)  # type: ignore[arg-type]


def test_the_state_shows_who_works_what_waits_and_how_to_stop_it() -> None:
    panels = render.place_panels(place(), ROSTER)

    (stop,) = elements(panels["state"], "button")
    halt, now, drop = elements(panels["status"], "button")
    assert halt.attributes["aria-label"] == "Stop Claude"
    (waiting,) = [e for e in elements(panels["status"], "div") if "data-messages" in e.attributes]
    assert stop.attributes["data-post"] == "/stop/t/web/t1"
    assert now.attributes["data-post"] == "/queue/1/now"
    assert drop.attributes["data-post"] == "/queue/1/drop"
    assert (waiting.attributes["data-messages"] or "").split() == ["m12", "m14"]
    assert "<script" not in "".join(panels.values())


def test_an_agent_that_its_provider_holds_back_is_shown_as_such_and_can_be_stopped() -> None:
    session = Session(1, SessionKey("web", "t1", "claude"), KEY, SessionState.LIMITED)
    member = ThreadAgent(1, ROSTER["claude"], "limited", stoppable=listing.stoppable(session))
    limited = place(members=(member,), waiting=())

    panels = render.place_panels(limited, ROSTER)

    assert limited.dot == "limit"
    assert "is waiting for its provider" in panels["status"]
    assert [each.text for each in elements(panels["state"], "button")] == ["Stop"]


def test_the_line_of_an_agent_at_work_says_what_it_does_and_where_it_is_in_its_plan() -> None:
    steps = tuple(
        {"text": f"Step {at}", "status": at} for at in ("completed", "in_progress", "pending")
    )
    doing = Doing(1000.0, "t7", "running", "pytest -q <b>")
    member = ThreadAgent(
        1, ROSTER["claude"], "working", stoppable=True, doing=doing, plan=Steps(steps)
    )

    panels = render.place_panels(place(members=(member,)), ROSTER)

    line = parse(panels["status"])
    assert "Claude is running pytest -q <b>" in " ".join(line.text.split())
    assert "step 2 of 3" in line.text
    assert 'data-turn="t7"' in panels["status"]
    assert 'data-from="1000.0"' in panels["status"]
    assert "Step pending" in parse(panels["side"]).text
    assert "1 of 3" in parse(panels["side"]).text


def test_nobody_is_meant_where_several_are_and_none_was_named() -> None:
    to = render.place_panels(place(untagged=()), ROSTER)["to"]

    assert elements(to, "option")[0].text == "Choose an agent"


def thread(
    name: str,
    state: SessionState,
    *,
    held: bool = False,
    failed: bool = False,
    service: str = "web",
) -> Thread:
    key = PlaceKey(service, name)
    session = Session(1, SessionKey(service, name, "claude"), key, state, held=held, failed=failed)
    return Thread(key, f"Title {name}", "", Entry("text", "last `words`\n\nhere"), (session,))


def test_threads_that_need_somebody_come_first() -> None:
    threads = [
        replace(thread("a", SessionState.IDLE), repository="folder:/home/kim/widget"),
        thread("b", SessionState.WORKING, service="slack"),
        thread("c", SessionState.WAITING),
        thread("d", SessionState.QUEUED, held=True),
        thread("e", SessionState.PARKED, failed=True),
    ]

    listed = listing.thread_list(threads, ROSTER, current=PlaceKey("web", "c"), more="/?threads=5")
    made = render.threads_panel(listed, ROSTER)

    assert [title for title, _ in listed.groups] == ["Needs you", "Recent"]
    assert [line.path for line in listed.groups[0][1]] == ["/t/web/c", "/t/web/d"]
    assert '<span class="chip" dir="auto">widget</span>' in made
    marks = ["Done", "Working", "Failed"]
    assert [line.mark for line in listed.groups[1][1]] == marks
    assert all(f'<span class="hidden">{mark}: </span>' in made for mark in marks)
    assert listed.groups[1][1][1].words == "Slack · Claude"
    assert elements(made, "a")[0].attributes["aria-current"] == "page"
    assert elements(made, "a")[-1].attributes["href"] == "/?threads=5"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("```python\nprint(1)\n```\nWhy does **this** print `1`?", "Why does this print 1?"),
        ("\n## Fix the [login](https://x.test/a_b) page", "Fix the login page"),
        ("> 1. *Please* keep snake_case and 2 * 3 * 4", "Please keep snake_case and 2 * 3 * 4"),
        ("```\nmake all\n```", "make all"),
        ("```python print(1) ``` and why", "and why"),
        ("---\nwords", "words"),
        ("word " * 30, "word " * 13 + "word …"),
        ("", ""),
    ],
)
def test_a_title_is_a_line_of_prose_with_whole_words(text: str, title: str) -> None:
    assert headline(text) == title


def test_an_agents_own_title_wins_unless_it_is_only_its_prompt() -> None:
    named = thread("a", SessionState.IDLE)
    session = named.sessions[0]
    own = replace(session, title="# Mend the *login*")
    prompt = replace(session, title="[operator on web, web:a] do it")

    assert title_of(named) == "Title a"
    assert title_of(replace(named, sessions=(prompt,))) == "Title a"
    assert title_of(replace(named, sessions=(prompt, own))) == "Mend the login"


def test_what_was_found_is_shown_around_the_word_and_cannot_be_markup() -> None:
    words = "Long before it, and more of that. " * 3 + "The <b>`HERON`</b> flies.\nAway."
    thread_found = replace(thread("a", SessionState.IDLE), found=words)

    listed = listing.found_list([thread_found], ROSTER, ["heron"])
    (line,) = listed.groups[0][1]
    made = render.threads_panel(listed, ROSTER)

    assert line.found == ("… it, and more of that. The <b>", "HERON", "</b> flies. Away.")
    assert "<b>HERON" not in made
    assert "<mark>HERON</mark>" in made
    assert listing.found_list([], ROSTER, ["x"]).groups == (("No thread found", ()),)


@pytest.mark.parametrize("shown_place", [None, place()])
def test_a_whole_page_is_well_formed_and_runs_nothing_of_its_own(shown_place: Place | None) -> None:
    page = PageView(
        roster=ROSTER,
        threads=listing.thread_list([thread("a", SessionState.IDLE)], ROSTER),
        csrf='a"b',
        visitor=HOSTILE,
        role="admin",
        assets={name: f"/static/{name}" for name in assets.assets()},
        place=shown_place,
        log=shown(Story().said("hi", "claude").row("text", "hello").rows),
        events="/events",
        missing=(("Gemini", "npm i"),),
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
    assert tokens(18_240, 200_000) == "18.2k of 200k"
    assert tokens(999, None) == "999"
    assert tokens(None, 5) == ""
    assert tokens(1_500_000, 2_000_000) == "1.5M of 2M"
