"""Why did nobody answer? Each reason on each service, with its time line and what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.scenarios.test_missed import be_away, leave
from tests.support.bridge import BridgeProcess
from tests.support.clock import START
from tests.support.github import GithubWorld
from tests.support.linear import LinearWorld
from tests.support.slack import SlackWorld


def ask_why(bridge: BridgeProcess, message: str) -> dict[str, Any]:
    """Ask the API what became of a message."""
    answer = bridge.http.get("/api/v1/why", params={"message": message})
    answer.raise_for_status()
    return dict(answer.json())


def permalink(channel: str, ts: str, thread: str = "") -> str:
    """Write the link that Slack copies."""
    within = f"?thread_ts={thread}&cid={channel}" if thread else ""
    return f"https://acme.slack.com/archives/{channel}/p{ts.replace('.', '')}{within}"


def test_on_slack_an_answered_message_has_its_time_line(tmp_path: Path) -> None:
    with SlackWorld(tmp_path) as world:
        thread = world.say(f"{world.at('claude')} say hello there")
        world.wait_answer(thread, "hello there")
        world.settle()
        found = ask_why(world.bridge, permalink(world.channel, thread))
        by_id = ask_why(world.bridge, thread)

    assert found["outcome"] == "answered"
    assert found["words"] == "claude answered it."
    assert [step["what"] for step in found["steps"]] == [
        "sent",
        "received, stored and acknowledged",
        "decided: it mentions the agent",
        "got a turn of claude",
        "first sign of claude",
        "claude: answered",
    ]
    times = [step["at"] for step in found["steps"]]
    assert times == sorted(times)
    assert by_id == found


def test_on_slack_every_reason_for_silence_is_told_with_its_remedy(tmp_path: Path) -> None:
    world = SlackWorld(tmp_path, agents=("claude", "codex"))
    elsewhere = world.slack.channel("elsewhere", [world.ann])
    with world:
        thread = world.say(f"{world.at('claude')} say one")
        world.wait_answer(thread, "one")
        world.say(f"{world.at('codex')} say two", thread=thread)
        world.wait_answer(thread, "two", "codex")
        untagged = world.say("and who answers this?", thread=thread)
        refused = world.say(f"{world.at('claude')} say three", who=world.guest)
        chatter = world.say("lunch?")
        absent = world.slack.say(world.ann, elsewhere, f"{world.at('claude')} say four")
        world.wait(lambda: any("guest" in each.words for each in world.said(refused)))
        world.settle()

        def why(ts: str, channel: str = world.channel, within: str = "") -> tuple[str, str, str]:
            found = ask_why(world.bridge, permalink(channel, ts, within))
            return found["outcome"], found["words"], found["remedy"]

        outcomes = {
            "untagged": why(untagged, within=thread),
            "refused": why(refused),
            "chatter": why(chatter),
            "absent": why(absent, elsewhere),
            "gone": why("1700000000.000100"),
        }
        unknown = ask_why(world.bridge, "https://example.com/nothing")

    assert {name: found[0] for name, found in outcomes.items()} == {
        "untagged": "nobody_meant",
        "refused": "refused",
        "chatter": "unmentioned",
        "absent": "absent",
        "gone": "gone",
    }
    assert "several agents" in outcomes["untagged"][1]
    assert "guest" in outcomes["refused"][1]
    assert "is not there" in outcomes["absent"][1]
    assert "/invite" in outcomes["absent"][2]
    assert all(remedy for _, _, remedy in outcomes.values())
    assert unknown["outcome"] == "unknown"


def test_on_slack_a_message_that_was_found_late_says_so(tmp_path: Path) -> None:
    with SlackWorld(tmp_path, began=START) as world:
        leave(world)
        missed = world.say(f"{world.at('claude')} say here after all")
        be_away(world, 600.0)
        world.wait_answer(missed, "here after all")
        world.settle()
        found = ask_why(world.bridge, permalink(world.channel, missed))
        page = world.bridge.http.get("/outcomes").text

    assert found["outcome"] == "answered"
    assert "the bridge found it late" in found["words"]
    times = {step["what"]: step["at"] for step in found["steps"]}
    assert times["received, stored and acknowledged"] - times["sent"] > 300
    assert "the bridge did not hear Slack: it was not running from" in page


def test_on_slack_an_event_that_is_not_subscribed_and_a_dead_connection_are_told_apart(
    tmp_path: Path,
) -> None:
    world = SlackWorld(tmp_path, app={"events": frozenset({"message.im"})})
    with world:
        lost = world.say(f"{world.at('claude')} say lost")
        link = permalink(world.channel, lost)
        never_sent = ask_why(world.bridge, link)
        world.slack.fail("apps.connections.open", error="internal_error", times=1000)
        world.slack.cut(world.apps["claude"])
        world.bridge.wait(
            lambda: ask_why(world.bridge, link)["outcome"] == "not_listening",
            "the dead connection is not told",
        )
        deaf = ask_why(world.bridge, link)

    assert never_sent["outcome"] == "never_sent"
    assert "agent-bridge manifest slack claude" in never_sent["remedy"]
    assert "does not hear from Slack" in deaf["words"]


def test_people_ask_why_in_the_thread_itself(tmp_path: Path) -> None:
    with SlackWorld(tmp_path, agents=("claude", "codex")) as world:
        thread = world.say(f"{world.at('claude')} say one")
        world.wait_answer(thread, "one")
        world.say(f"{world.at('codex')} say two", thread=thread)
        world.wait_answer(thread, "two", "codex")
        world.say("who answers this?", thread=thread)
        world.say("!why", thread=thread)
        world.wait_told(thread, "It is for no agent: several agents are there")
        world.say("!why", thread=thread)
        world.wait(
            lambda: sum("It is for no agent" in each.words for each in world.said(thread)) == 2
        )
        world.settle()

    [told, again] = [each.words for each in world.said(thread) if "no agent" in each.words]
    assert "decided: several agents are there" in told
    assert "Mention the agent" in told
    assert again == told


def test_on_github_every_reason_for_silence_is_told_with_its_remedy(tmp_path: Path) -> None:
    with GithubWorld(tmp_path) as world:
        issue = world.issue()
        at = f"{world.github.url}/acme/widgets/issues/{issue.number}#issuecomment-"
        answered = world.github.comment("ann", issue, "@claude-bridge\nsay hello there")
        world.wait_for(issue, "hello there")
        refused = world.github.comment("rae", issue, "@claude-bridge\nsay no")
        chatter = world.github.comment("ann", issue, "lunch?")
        world.settled()
        foreign = world.github.repository("acme/secret", {"ann": "write"})
        hidden = world.github.open_issue("ann", foreign, "A bug", "@claude-bridge say hi")

        def why(link: str) -> dict[str, Any]:
            return ask_why(world.bridge, link)

        done = why(f"{at}{answered.id}")
        assert done["outcome"] == "answered"
        assert [step["what"] for step in done["steps"]][:2] == [
            "sent",
            "received, stored and acknowledged",
        ]
        no = why(f"{at}{refused.id}")
        assert no["outcome"] == "refused"
        assert no["remedy"]
        silent = why(f"{at}{chatter.id}")
        assert silent["outcome"] in {"nobody_meant", "unmentioned"}
        assert "Mention the agent" in silent["remedy"]
        assert why(f"{at}99999999")["outcome"] == "gone"
        absent = why(f"{world.github.url}/acme/secret/issues/{hidden.number}")
        assert absent["outcome"] == "absent"
        assert "install the App" in absent["remedy"]

        app = world.apps["claude"]
        hook, app.hook_url = app.hook_url, ""
        lost = world.github.comment("ann", issue, "@claude-bridge\nsay lost")
        off = why(f"{at}{lost.id}")
        assert off["outcome"] == "hook_off"
        assert "Turn the webhook on" in off["remedy"]
        app.hook_url, app.events = hook, ("issues",)
        deaf = why(f"{at}{lost.id}")
        assert deaf["outcome"] == "not_subscribed"
        assert "issue_comment" in deaf["words"]


def test_a_message_from_a_gap_is_told_with_the_times_of_the_gap(tmp_path: Path) -> None:
    with GithubWorld(tmp_path) as world:
        issue = world.issue()
        app = world.apps["claude"]
        events, app.events = app.events, ()
        lost = world.github.comment("ann", issue, "@claude-bridge\nsay lost")
        world.bridge.stop()
        world.bridge.write(
            "insert into gap (adapter, began, ended, cause) values (?, ?, ?, ?)",
            *("github:claude", lost.at - 60, lost.at + 60, "hook"),
        )
        app.events = events
        world.bridge.start()
        link = f"{world.github.url}/acme/widgets/issues/{issue.number}#issuecomment-{lost.id}"
        found = ask_why(world.bridge, link)
        page = world.bridge.http.get("/outcomes")

    assert found["outcome"] == "gap"
    assert "the webhook of Github failed from" in found["words"]
    assert [step["what"] for step in found["steps"]] == [
        "not heard from here on",
        "sent",
        "heard again",
    ]
    assert found["remedy"]
    assert "the webhook of Github failed from" in page.text


def test_on_linear_every_reason_for_silence_is_told_with_its_remedy(tmp_path: Path) -> None:
    with LinearWorld(tmp_path) as world:
        session = world.assign("say hello there")
        world.wait_end(session)
        silent = world.linear.issue("Lunch", "Where?", by=world.ann)

        def why(name: str) -> dict[str, Any]:
            return ask_why(world.bridge, f"https://linear.app/acme/issue/{name}/do-this")

        done = why(session.issue.identifier)
        assert done["outcome"] == "answered"
        assert done["steps"][0]["what"] == "sent"
        unmeant = why(silent.identifier)
        assert unmeant["outcome"] == "unmentioned"
        assert unmeant["remedy"]
        absent = why("NONE-7")
        assert absent["outcome"] == "absent"
        assert "access to the team" in absent["remedy"]


def test_on_the_page_a_thread_tells_what_became_of_its_last_message(tmp_path: Path) -> None:
    with SlackWorld(tmp_path, page=True) as world:
        made = world.bridge.http.post(
            "/api/v1/sessions", json={"agent": "claude", "text": "say hello there"}
        ).json()
        world.bridge.wait(
            lambda: world.bridge.rows("select state from turn") == [("done",)], "no answer"
        )
        found = ask_why(world.bridge, f"http://localhost:8000/t/web/{made['thread']}")
        page = world.bridge.http.get("/outcomes", params={"message": "nothing like this"})

    assert found["outcome"] == "answered"
    assert page.status_code == 200
    assert "knows no such message" in page.text
