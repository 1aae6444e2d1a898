"""Posts as activities: each thing shown once, what matters only now ephemeral."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from app.model.posts import DelegatedLine, Fact, PostContent, ToolLine
from app.model.updates import AskOption, PlanStep
from app.services.linear.render import (
    NewActivity,
    SessionChange,
    ShownTurn,
    Step,
    activity_id,
    steps,
)
from sim.linear.rules import check_content, check_signal, checked_plan

WORKING = PostContent(kind="turn", state="working")
READ = ToolLine("1", "app.py", "completed", "read")
RAN = ToolLine("2", "make test", "completed", "execute", "12 passed")


def shown(
    content: PostContent, before: ShownTurn | None = None, *, busy: bool = False
) -> list[Step]:
    """Render, and have the simulated Linear look at every shape."""
    found = list(steps(content, before or ShownTurn(), busy=busy))
    for step in found:
        if isinstance(step.call, NewActivity):
            check_content(dict(step.call.content), ephemeral=step.call.ephemeral)
            signal, metadata = step.call.signal or (None, None)
            check_signal(step.call.content["type"], signal, metadata)
        else:
            checked_plan(step.call.fields.get("plan", []))
    return found


def activities(found: list[Step]) -> list[tuple[str, str, bool]]:
    return [
        (step.call.content["type"], step.call.content.get("body", ""), step.call.ephemeral)
        for step in found
        if isinstance(step.call, NewActivity)
    ]


def test_a_turn_begins_with_an_ephemeral_thought() -> None:
    found = shown(PostContent(kind="turn", state="starting"))

    assert activities(found) == [("thought", "On it.", True)]
    assert shown(WORKING, found[-1].shown) == []


def test_a_turn_that_waited_says_when_it_begins() -> None:
    (waiting,) = shown(PostContent(kind="turn", state="queued"))

    assert activities(shown(WORKING, waiting.shown)) == [("thought", "On it.", True)]


def test_words_that_were_taken_are_confirmed_once() -> None:
    first = shown(replace(WORKING, steered=("a",)))
    more = shown(replace(WORKING, steered=("a", "b", "c")), first[-1].shown)
    again = shown(replace(WORKING, steered=("a", "b", "c")), more[-1].shown)

    one = "I have your message and go on with it."
    two = "I have your 2 messages and go on with them."
    assert activities(first) == [("thought", one, False)]
    assert activities(more) == [("thought", two, False)]
    assert again == []


def test_finished_tools_become_one_action_and_are_not_shown_again() -> None:
    first = shown(replace(WORKING, tools=(READ, RAN)))
    (action, *_) = first
    assert isinstance(action.call, NewActivity)

    again = shown(replace(WORKING, tools=(READ, RAN)), first[-1].shown)

    assert action.call.content["action"] == "Read 1 file, ran 1 command"
    assert "- Read `app.py`" in action.call.content["result"]
    assert not action.call.ephemeral
    assert again == []


def test_one_finished_tool_shows_what_it_gave_back() -> None:
    (action, *_) = shown(replace(WORKING, tools=(RAN,)))

    assert isinstance(action.call, NewActivity)
    assert action.call.content == {
        "type": "action",
        "action": "Ran",
        "parameter": "make test",
        "result": "```\n12 passed\n```",
    }


def test_a_long_output_is_folded_and_cannot_unfold_itself() -> None:
    tool = replace(RAN, output="\n".join(["line"] * 20 + ["+++", "end"]))
    content = PostContent(kind="turn", state="working", tools=(tool,), verbosity="full")

    (step,) = steps(content, ShownTurn())

    assert isinstance(step.call, NewActivity)
    first, *_, last = (lines := step.call.content["result"].splitlines())
    assert (first, last) == ("+++ Output, 22 lines", "+++")
    assert lines.count("+++") == 1


def test_output_cannot_end_its_fence() -> None:
    tool = replace(RAN, output="```\n# a heading")
    (action, *_) = shown(replace(WORKING, tools=(tool,)))

    assert isinstance(action.call, NewActivity)
    assert action.call.content["result"].startswith("````\n")


def test_a_tool_at_work_is_shown_for_as_long_as_it_is() -> None:
    tool = ToolLine("3", "make build", "in_progress", "execute")
    (glimpse,) = shown(replace(WORKING, tools=(tool,)))

    assert isinstance(glimpse.call, NewActivity)
    assert glimpse.call.ephemeral
    assert glimpse.call.content["action"] == "Running"


def test_words_that_are_being_written_are_seen_by_their_end() -> None:
    (glimpse,) = shown(replace(WORKING, text="a" * 500 + " the end"))

    assert isinstance(glimpse.call, NewActivity)
    assert glimpse.call.content["body"].endswith("the end")
    assert len(glimpse.call.content["body"]) <= 301


def test_plan_and_links_change_the_session_once() -> None:
    content = replace(
        WORKING,
        plan=(PlanStep("look", "completed"), PlanStep("change", "in_progress")),
        facts=(Fact("PR 7", "https://example.com/o/r/pull/7"), Fact("0.10 USD")),
    )
    (change, *_) = found = shown(content)

    assert isinstance(change.call, SessionChange)
    assert change.call.fields == {
        "plan": [
            {"content": "look", "status": "completed"},
            {"content": "change", "status": "inProgress"},
        ],
        "addedExternalUrls": [{"label": "PR 7", "url": "https://example.com/o/r/pull/7"}],
    }
    assert shown(content, found[-1].shown) == []


def test_a_note_is_said_once_and_stays() -> None:
    found = shown(replace(WORKING, note="The bridge restarted."))

    assert activities(found)[0] == ("thought", "The bridge restarted.", False)
    assert shown(replace(WORKING, note="The bridge restarted."), found[-1].shown) == []


def test_the_answer_is_one_response_after_what_was_left_to_show() -> None:
    content = PostContent(kind="turn", state="done", text="All good.", tools=(READ,))

    assert [kind for kind, *_ in activities(shown(content))] == ["action", "response"]


def test_an_answer_without_words_still_says_something() -> None:
    assert (
        activities(shown(PostContent(kind="turn", state="done")))[-1][1]
        == "Finished without a message."
    )


def test_a_failure_is_an_error() -> None:
    content = PostContent(kind="turn", state="failed", note="It died.")

    assert activities(shown(content)) == [("error", "It died.", False)]


def test_after_a_stop_there_is_one_word_and_nothing_else() -> None:
    content = PostContent(
        kind="turn", state="stopped", note="Stopped.", tools=(READ,), plan=(PlanStep("look"),)
    )

    assert activities(shown(content)) == [("response", "Stopped.", False)]


def test_quiet_shows_no_actions() -> None:
    content = replace(WORKING, tools=(READ,), verbosity="quiet")

    assert "action" not in [kind for kind, *_ in activities(shown(content))]


def test_an_ask_offers_its_options_by_name_and_id() -> None:
    options = (AskOption("allow", "Allow once", "allow_once"), AskOption("no", "Reject", "reject"))
    content = PostContent(kind="ask", state="open", text="Run it?", ask=1, options=options)
    (step,) = shown(content)

    assert isinstance(step.call, NewActivity)
    assert step.call.content == {"type": "elicitation", "body": "```\nRun it?\n```"}
    assert step.call.options == (
        {"label": "Allow once", "value": "Allow once"},
        {"label": "Reject", "value": "Reject"},
    )


def test_an_answered_ask_lets_the_session_go_on_and_a_cancelled_one_says_nothing() -> None:
    answered = PostContent(kind="ask", state="answered", text="Run it?", note="Ann: Allow once")

    assert activities(shown(answered)) == [("thought", "`Ann: Allow once`", True)]
    assert shown(replace(answered, state="cancelled")) == []


def test_a_lost_ask_is_told_for_good() -> None:
    lost = PostContent(kind="ask", state="lost", text="Run it?", note="It was lost.")

    assert activities(shown(lost)) == [("thought", "It was lost.", False)]


def test_a_notice_is_an_answer_unless_somebody_is_at_work() -> None:
    notice = PostContent(kind="notice", note="claude: idle")

    assert activities(shown(notice)) == [("response", "claude: idle", False)]
    assert activities(shown(notice, busy=True)) == [("thought", "claude: idle", False)]


def test_too_long_an_answer_says_that_there_is_more() -> None:
    content = PostContent(kind="turn", state="done", text="x" * 60_000)

    assert activities(shown(content))[-1][1].endswith("more characters in the transcript]")


def test_the_same_post_leads_to_the_same_ids_of_the_form_that_linear_takes() -> None:
    name = activity_id("ab-1", "first")

    assert name == activity_id("ab-1", "first")
    assert name != activity_id("ab-2", "first")
    assert UUID(name).version == 4


ASKED = DelegatedLine("Codex", "look at the tests", "working", 7, link="https://b.example")


def test_an_agent_that_was_asked_is_an_action_with_its_state_as_the_result() -> None:
    first = shown(replace(WORKING, delegated=(ASKED,)), ShownTurn(glimpse="On it."))
    ended = replace(ASKED, state="done", seconds=12.0, words="All good.")
    after = shown(replace(WORKING, delegated=(ended,)), first[-1].shown)
    (working, *_), (done, *_) = first, after
    assert isinstance(working.call, NewActivity)
    assert isinstance(done.call, NewActivity)

    assert working.call.ephemeral
    assert working.call.content == {
        "type": "action",
        "action": "Asked Codex",
        "parameter": "look at the tests",
        "result": "Working · [Open](https://b.example)",
    }
    assert not done.call.ephemeral
    assert done.call.content["result"] == (
        "Done in 12s · [Open](https://b.example)\n\n```\nAll good.\n```"
    )
    assert shown(replace(WORKING, delegated=(ended,)), after[-1].shown) == []


def test_an_agent_that_goes_on_after_the_turn_that_asked_is_shown_once() -> None:
    ended = replace(WORKING, state="done", text="Hi", delegated=(ASKED,))

    action, last = shown(ended)

    assert isinstance(action.call, NewActivity)
    assert action.call.content["result"].startswith("Still working")
    assert isinstance(last.call, NewActivity)
    assert last.call.content["type"] == "response"
