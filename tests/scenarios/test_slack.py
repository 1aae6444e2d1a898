"""Stories on the simulated Slack: a bridge in a process of its own, real agent processes."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from tests.support.slack import SlackWorld


def test_a_mention_is_answered_in_its_thread_and_nobody_is_answered_twice(tmp_path: Path) -> None:
    with SlackWorld(tmp_path) as world:
        world.say("help")
        thread = world.say(f"{world.at('claude')} say hello there")

        answer = world.wait_answer(thread, "hello there")
        world.settle()

    assert [each.ts for each in world.answers(thread)] == [answer.ts]
    [told] = world.slack.notified(world.ann)
    assert "hello there" in told.words
    assert world.turns() == 1
    assert world.bridge.rows("select name from place") == [(f"{world.channel}:{thread}",)]
    assert world.too_often() == []


def test_codex_reviews_in_the_same_thread_what_claude_said(tmp_path: Path) -> None:
    with SlackWorld(tmp_path, agents=("claude", "codex")) as world:
        thread = world.say(f"{world.at('claude')} say the fix is in parser.py")
        world.wait_answer(thread, "the fix is in parser.py")
        world.say("thanks, looks fine", thread=thread, who=world.bob)
        world.wait_answer(thread, "thanks, looks fine")
        world.say(f"{world.at('codex')} say reviewed it", thread=thread)
        world.wait_answer(thread, "reviewed it", "codex")

        world.say("who answers this one?", thread=thread)
        world.say("!listen latest", thread=thread)
        world.wait(
            lambda: any("latest" in m.words for m in world.slack.thread(world.channel, thread))
        )
        world.say("say only the latest one answers", thread=thread)
        world.wait_answer(thread, "only the latest one answers", "codex")
        world.settle()

    [(review,)] = world.bridge.rows(
        "select prompt from turn where prompt like '%reviewed it%' limit 1"
    )
    assert "the fix is in parser.py" in review
    assert "Bob: thanks, looks fine" in review
    assert "- claude" in review
    assert "`agents_message`" in review
    assert world.turns() == 4
    silence = "select count(*) from transcript where text = 'nobody_answers'"
    assert world.bridge.rows(silence) == [(1,)]
    assert world.too_often() == []


def test_the_native_stop_button_and_the_command_stop_the_turn(tmp_path: Path) -> None:
    with SlackWorld(tmp_path) as world:
        app = world.apps["claude"]
        first = world.say(f"{world.at('claude')} say begun\nhold never")
        world.wait(lambda: any("begun" in each.words for each in world.answers(first)))
        world.slack.press_stop(world.ann, app, world.channel, first)
        by_button = world.wait_answer(first, "Stopped.")
        world.say(f"{world.at('claude')} hold never", thread=first)
        world.wait(lambda: world.slack.status(app, world.channel, first) == "processing")
        world.wait_state("prompted")
        world.say("!stop", thread=first)

        by_command = world.wait_answer(first, "Stopped.", times=2)
        world.wait(lambda: world.slack.status(app, world.channel, first) == "active")
        world.settle()

    assert by_button.ts != by_command.ts
    assert len(world.answers(first)) == 2
    assert world.bridge.rows("select distinct state from turn") == [("cancelled",)]


def test_an_approval_counts_from_members_only_and_says_who_gave_it(tmp_path: Path) -> None:
    with SlackWorld(tmp_path) as world:
        thread = world.say(f"{world.at('claude')} write a.txt hello\nsay written")
        question = world.wait_button(thread, "Allow once")
        world.slack.click(world.guest, question.ts, "Allow once")
        world.wait(lambda: world.whispers(world.guest))
        world.slack.click(world.bob, question.ts, "Allow once")

        world.wait_answer(thread, "written")
        world.wait(lambda: "Bob: Allow once" in world.slack.message(question.ts).words)
        world.settle()

    assert "guest" in world.whispers(world.guest)[0]
    assert (world.bridge.workspace("claude") / "a.txt").read_text().strip() == "hello"


def test_a_click_after_a_restart_is_told_and_the_renewed_question_counts(tmp_path: Path) -> None:
    with SlackWorld(tmp_path) as world:
        thread = world.say(f"{world.at('claude')} write a.txt hello\nsay written")
        old = world.wait_button(thread, "Allow once")
        buttons = old.blocks
        world.bridge.kill()
        world.bridge.start()
        world.wait_listening()
        world.wait(lambda: not [b for b in old.blocks if b["type"] == "actions"])
        new = world.wait_button(thread, "Allow once")
        shown, old.blocks = old.blocks, buttons  # as somebody still sees it who was away
        world.slack.click(world.bob, old.ts, "Allow once")
        old.blocks = shown
        world.wait(lambda: world.whispers(world.bob))
        world.slack.click(world.ann, new.ts, "Allow once")

        world.wait_answer(thread, "written")
        world.settle()

    assert new.ts != old.ts
    assert "restarted" in old.words
    [told] = world.whispers(world.bob)
    assert "does not count" in told
    assert world.turns() == 1
    assert len([m for m in world.answers(thread) if "written" in m.words]) == 1


def test_a_long_answer_arrives_whole(tmp_path: Path) -> None:
    with SlackWorld(tmp_path) as world:
        thread = world.say(f"{world.at('claude')} big 40000\nsay the end")

        world.wait_answer(thread, "the end")
        world.settle()

    shown = "".join(each.words for each in world.answers(thread))
    said = world.bridge.rows("select text from transcript where kind = 'text' order by id")
    text = "".join(words for (words,) in said)
    assert "".join(text.split()) in "".join(shown.split())
    assert 4 <= len(world.answers(thread)) <= 6
    assert world.too_often() == []


def test_what_three_people_write_while_the_socket_is_cut_is_heard_once(tmp_path: Path) -> None:
    with SlackWorld(tmp_path) as world:
        app = world.apps["claude"]
        everybody = [world.ann, world.bob, world.slack.person("Cleo")]
        world.slack.channels[world.channel].members.add(everybody[2])
        threads: list[str] = []

        def write(who: str) -> None:
            threads.append(world.say(f"{world.at('claude')} say heard {who}", who=who))

        writers = [threading.Thread(target=write, args=(who,)) for who in everybody]
        writers[0].start()
        world.slack.cut(app)
        for writer in writers[1:]:
            writer.start()
        for writer in writers:
            writer.join()
        for thread in threads:
            who = world.slack.message(thread).user
            world.wait_answer(thread, f"heard {who}")
        world.settle()

    assert world.turns() == 3
    assert [len(world.answers(thread)) for thread in threads] == [1, 1, 1]
    assert world.slack.lost == []


def test_replies_that_nobody_heard_are_fetched_after_a_restart(tmp_path: Path) -> None:
    with SlackWorld(tmp_path) as world:
        thread = world.say(f"{world.at('claude')} say first")
        world.wait_answer(thread, "first")
        world.settle()
        world.bridge.stop()
        world.slack.apps["claude"].events = frozenset()  # Slack has given up sending
        world.say("say second", thread=thread)
        world.bridge.start()

        world.wait_answer(thread, "second")
        world.settle()

    assert world.turns() == 2


def test_a_bridge_killed_after_the_acknowledgement_answers_once(tmp_path: Path) -> None:
    with SlackWorld(tmp_path) as world:
        world.bridge.arm("decisions.accept", "before", act="pause")
        thread = world.say(f"{world.at('claude')} say it was kept")
        world.bridge.wait_reached()
        world.wait(lambda: world.slack.acknowledged and not world.slack.unacknowledged)
        world.bridge.kill()
        world.bridge.let_go()
        world.bridge.start()

        world.wait_answer(thread, "it was kept")
        world.settle()

    assert world.turns() == 1
    assert len(world.answers(thread)) == 1


def test_a_bridge_killed_between_the_acknowledgement_and_the_look_up_knows_who_spoke(
    tmp_path: Path,
) -> None:
    with SlackWorld(tmp_path) as world:
        world.slack.stall("users.info", times=1000)
        thread = world.say(f"{world.at('claude')} say hello <@{world.bob}>")
        world.wait(lambda: len(world.slack.acknowledged) == 2)
        world.wait(lambda: world.slack.stalls["users.info"].waiting)
        world.bridge.kill()
        world.slack.go_on("users.info")
        world.bridge.start()

        world.wait_answer(thread, "hello @Bob")
        world.settle()

    [(prompt,)] = world.bridge.rows("select prompt from turn")
    assert "Ann" in prompt


def test_a_bridge_killed_in_mid_answer_gives_the_whole_answer_once(tmp_path: Path) -> None:
    with SlackWorld(tmp_path) as world:
        thread = world.say(f"{world.at('claude')} say begun\nhold go\nsay ended")
        # Its last letters may be held back for a moment: a secret could begin with them.
        world.wait(lambda: any("beg" in each.words for each in world.answers(thread)))
        [before] = world.answers(thread)
        world.bridge.kill()
        (world.bridge.workspace("claude") / "go").touch()
        world.bridge.start()

        world.wait_answer(thread, "The answer is below.")
        world.settle()
        status = (world.apps["claude"], world.channel, thread)
        world.wait(lambda: world.slack.status(*status) == "active")

    [progress, answer] = world.answers(thread)
    assert progress is before
    answered = [told for told in world.slack.notified(world.ann) if "ended" in told.words]
    assert [told.ts for told in answered] == [answer.ts]
    assert world.slack.reds == []
    assert world.turns() == 1


def test_a_bot_removed_in_mid_turn_harms_nobody_else(tmp_path: Path) -> None:
    with SlackWorld(tmp_path) as world:
        app = world.apps["claude"]
        thread = world.say(f"{world.at('claude')} say begun\nhold go\nsay ended")
        # Its last letters may be held back for a moment: a secret could begin with them.
        world.wait(lambda: any("beg" in each.words for each in world.answers(thread)))
        world.slack.channels[world.channel].members.remove(app.user)
        (world.bridge.workspace("claude") / "go").touch()
        world.bridge.wait(
            lambda: world.bridge.rows("select state from post where turn = 1") == [("failed",)],
            "the post was not given up",
        )
        other = world.slack.channel("other", [world.ann, app])
        again = world.slack.say(world.ann, other, f"{world.at('claude')} say still here")
        world.wait(
            lambda: any("still here" in m.words for m in world.slack.thread(other, again)[1:])
        )
        world.settle()

    assert world.bridge.rows("select distinct state from turn") == [("done",)]
    said = "select count(*) from transcript where text like '%ended%' and kind = 'text'"
    assert world.bridge.rows(said) == [(1,)]


def test_guests_and_strangers_are_refused_with_a_reason(tmp_path: Path) -> None:
    with SlackWorld(tmp_path) as world:
        by_guest = world.say(f"{world.at('claude')} say secrets", who=world.guest)
        by_stranger = world.say(f"{world.at('claude')} say secrets", who=world.stranger)

        world.wait_answer(by_guest, "guest")
        world.wait_answer(by_stranger, "another")
        world.settle()

    assert world.turns() == 0


def test_an_agent_that_was_not_invited_is_said_to_be_elsewhere(tmp_path: Path) -> None:
    with SlackWorld(tmp_path, agents=("claude", "codex")) as world:
        direct = world.slack.channel("dm", [world.ann, world.apps["claude"]], "im")
        world.slack.channels[world.channel].members.remove(world.apps["codex"].user)
        thread = world.say(f"{world.at('codex')} say hello")
        world.wait_answer(thread, "codex is not available here: it is not in this channel")
        private = world.slack.say(world.ann, direct, f"{world.at('codex')} say hello")
        world.wait(
            lambda: any("direct" in each.words for each in world.slack.thread(direct, private)[1:])
        )
        world.settle()

    assert world.turns() == 0


def test_whoever_may_not_press_a_button_or_edits_too_late_is_told_once_and_in_private(
    tmp_path: Path,
) -> None:
    with SlackWorld(tmp_path, agents=("claude", "codex")) as world:
        thread = world.say(f"{world.at('claude')} {world.at('codex')} hold go")
        world.wait_state("prompted", 2)
        world.slack.edit(thread, "never mind")
        world.wait(lambda: world.whispers(world.ann))
        world.say(f"{world.at('claude')} say later", thread=thread)
        waiting = world.wait_button(thread, "Discard")
        world.slack.click(world.guest, waiting.ts, "Discard")
        world.wait(lambda: len(world.whispers(world.guest)) == 1)
        world.wait(lambda: world.slack.status(world.apps["claude"], world.channel, thread))
        world.slack.press_stop(world.guest, world.apps["claude"], world.channel, thread)
        world.wait(lambda: len(world.whispers(world.guest)) == 2)
        world.say("stop all", thread=thread)
        world.settle()

    assert ["Too late" in words for words in world.whispers(world.ann)] == [True]
    assert all("guest" in words for words in world.whispers(world.guest))
    shown = [each.words for name in world.agents for each in world.answers(thread, name)]
    assert not [words for words in shown if "guest" in words]
    assert world.bridge.rows("select distinct state from turn") == [("cancelled",)]


def test_an_edit_changes_a_waiting_message_and_a_deletion_drops_it(tmp_path: Path) -> None:
    with SlackWorld(tmp_path) as world:
        thread = world.say(f"{world.at('claude')} hold go")
        world.wait_state("prompted")
        waiting = world.say("say wrong words", thread=thread)
        world.wait_button(thread, "Discard")
        world.slack.edit(waiting, "say right words")
        world.slack.unfurl(waiting)
        changed = "select count(*) from message where edited = 'say right words'"
        world.bridge.wait(lambda: world.bridge.rows(changed) == [(1,)], "the edit was not taken")
        regretted = world.say("say regretted words", thread=thread)
        kept = "select count(*) from message where message_id = ?"
        world.bridge.wait(lambda: world.bridge.rows(kept, regretted) == [(1,)], "it was not kept")
        world.slack.delete(regretted)
        gone = "select count(*) from transcript where text = 'message_taken_back'"
        world.bridge.wait(lambda: world.bridge.rows(gone) == [(1,)], "the deletion was not taken")
        (world.bridge.workspace("claude") / "go").touch()

        world.wait_answer(thread, "right words")
        world.settle()

    assert world.turns() == 2
    shown = " ".join(each.words for each in world.answers(thread))
    assert "wrong words" not in shown
    assert "regretted words" not in shown
    assert "right words" in world.slack.notified(world.ann)[-1].words


@pytest.mark.slow
def test_the_button_now_lets_a_waiting_message_run_at_once(tmp_path: Path) -> None:
    with SlackWorld(tmp_path) as world:
        thread = world.say(f"{world.at('claude')} hold never")
        world.wait_state("prompted")
        world.say("say without delay", thread=thread, who=world.bob)
        waiting = world.wait_button(thread, "Send now")
        world.slack.click(world.bob, waiting.ts, "Send now")

        world.wait_answer(thread, "without delay")
        world.settle()
        # Looked up once it is over: what waited shows the words too while the turn ends.
        answer = world.wait_answer(thread, "without delay")

    # An edit of what waited would have notified no one.
    assert "without delay" in world.slack.notified(world.bob)[-1].words
    assert answer.ts != waiting.ts
    assert waiting.words == "Done. The answer is below."
    assert world.bridge.rows("select state from turn order by id") == [("cancelled",), ("done",)]
    assert world.too_often() == []


def test_files_reach_the_agent_also_with_a_mention_and_from_earlier_in_the_thread(
    tmp_path: Path,
) -> None:
    with SlackWorld(tmp_path) as world:
        early = world.slack.file("early notes.txt", b"early")
        thread = world.say("look at this", who=world.bob, files=[early])
        picture = world.slack.file("shot.png", b"\x89PNG\r\n\x1a\n", "image/png")
        world.say(f"{world.at('claude')} say seen", thread=thread, files=[picture])

        world.wait_answer(thread, "seen")
        world.settle()

    [(prompt,)] = world.bridge.rows("select prompt from turn")
    files = world.bridge.data_dir / "workspaces" / "1-claude.files"
    brought = {path.name: path.read_bytes() for path in files.glob("*/*")}
    assert brought == {"early_notes.txt": b"early", "shot.png": b"\x89PNG\r\n\x1a\n"}
    assert "shot.png" in prompt
    assert "Bob: look at this" in prompt


@pytest.mark.parametrize("lacking", [{"streams": False}, {"no_sessions": "feature_disabled"}])
def test_a_workspace_without_the_agent_surface_gets_an_edited_message(
    tmp_path: Path, lacking: dict[str, Any]
) -> None:
    with SlackWorld(tmp_path, app=lacking) as world:
        thread = world.say(f"{world.at('claude')} plan read; write\nsay one\nhold go\nsay two")
        world.wait(lambda: any("one" in each.words for each in world.answers(thread)))
        (world.bridge.workspace("claude") / "go").touch()

        world.wait_answer(thread, "two")
        world.settle()

    answer = world.answers(thread)[-1]
    answered = [told for told in world.slack.notified(world.ann) if "two" in told.words]
    assert [told.ts for told in answered] == [answer.ts]
    assert world.slack.reds == []
    assert world.too_often() == []


def test_a_message_can_be_handed_to_an_agent_from_its_menu(tmp_path: Path) -> None:
    with SlackWorld(tmp_path) as world:
        app, file = world.apps["claude"], world.slack.file("log.txt", b"it broke")
        thread = world.say("<@U0BOT> the build broke", who=world.bob, files=[file])
        world.slack.use_shortcut(world.ann, app, thread, "ask")
        world.wait(lambda: world.answers(thread))
        elsewhere = world.slack.channel("elsewhere", [world.ann])
        there = world.slack.say(world.ann, elsewhere, "not for you")
        world.slack.use_shortcut(world.ann, app, there, "ask")
        world.wait(lambda: world.slack.responses)
        by_guest = world.say("please", who=world.bob)
        world.slack.use_shortcut(world.guest, app, by_guest, "ask")
        world.wait_answer(by_guest, "did not act")
        world.settle()

    [(prompt,)] = world.bridge.rows("select prompt from turn")
    assert "Handle the message below." in prompt
    assert "Bob: @U0BOT the build broke" in prompt
    assert "log.txt" in prompt
    assert "invite it with `/invite`" in world.slack.responses[0]


def test_what_people_think_of_an_answer_is_kept_with_its_turn(tmp_path: Path) -> None:
    with SlackWorld(tmp_path) as world:
        thread = world.say(f"{world.at('claude')} say hello")
        answer = world.wait_answer(thread, "hello")
        world.slack.rate(world.bob, answer.ts, good=True)
        world.wait(lambda: world.whispers(world.bob))
        world.slack.rate(world.bob, answer.ts, good=True)
        world.slack.rate(world.guest, answer.ts, good=False)
        world.slack.rate(world.ann, answer.ts, good=False)
        world.wait(lambda: world.whispers(world.ann))
        world.settle()

    kept = "select text, turn from transcript where text like 'rated_%' order by id"
    assert world.bridge.rows(kept) == [("rated_good", 1), ("rated_bad", 1)]
    assert world.whispers(world.bob) == ["Thanks. This is kept with the answer."]
    assert world.turns() == 1


def test_a_message_is_marked_when_the_agent_is_done_with_it(tmp_path: Path) -> None:
    with SlackWorld(tmp_path) as world:
        done = world.say(f"{world.at('claude')} say hello")
        world.wait(lambda: world.slack.message(done).reactions)
        failed = world.say(f"{world.at('claude')} fail")
        world.wait(lambda: world.slack.message(failed).reactions)
        world.apps["claude"].scopes -= {"reactions:write"}
        unmarked = world.say(f"{world.at('claude')} say no mark")
        world.wait_answer(unmarked, "no mark")
        world.settle()

    marks = [list(world.slack.message(ts).reactions) for ts in (done, failed, unmarked)]
    assert marks == [["white_check_mark"], ["x"], []]


def test_a_message_into_the_running_turn_is_marked_when_it_is_there_and_when_it_is_answered(
    tmp_path: Path,
) -> None:
    with SlackWorld(tmp_path, entry={"while_busy": "steer"}) as world:
        thread = world.say(f"{world.at('claude')} say begun\nsteerable")
        world.wait(lambda: any("begun" in each.words for each in world.answers(thread)))

        steered = world.say("say hello\nhold go", thread=thread)
        world.wait(lambda: "eyes" in world.slack.message(steered).reactions)
        is_answered = "white_check_mark" in world.slack.message(steered).reactions
        (world.bridge.workspace("claude") / "go").touch()
        world.wait(lambda: "white_check_mark" in world.slack.message(steered).reactions)
        world.settle()

    assert not is_answered
    assert world.turns() == 1
    assert list(world.slack.message(steered).reactions) == ["eyes", "white_check_mark"]
    assert world.too_often() == []


def test_a_direct_message_needs_no_mention(tmp_path: Path) -> None:
    with SlackWorld(tmp_path) as world:
        direct = world.slack.channel("dm", [world.ann, world.apps["claude"]], "im")
        thread = world.slack.say(world.ann, direct, "say between us")

        world.wait(
            lambda: any("between us" in m.words for m in world.slack.thread(direct, thread)[1:])
        )
        world.settle()

    assert world.turns() == 1


@pytest.mark.slow
def test_a_bridge_killed_after_its_stream_notifies_once_with_the_whole_answer(
    tmp_path: Path,
) -> None:
    with SlackWorld(tmp_path, speed=40.0) as world:
        thread = world.say(f"{world.at('claude')} plan read; write\nsay begun\nhold go\nsay ended")
        status = (world.apps["claude"], world.channel, thread)
        world.wait(lambda: world.slack.notified(world.ann))
        [before] = world.answers(thread)
        world.wait(lambda: before.edits)
        assert world.slack.status(*status) == "processing"
        world.bridge.kill()
        (world.bridge.workspace("claude") / "go").touch()
        world.bridge.start()

        world.wait_answer(thread, "The answer is below.")
        world.settle()
        world.wait(lambda: world.slack.status(*status) == "active")

    [_, answer] = world.answers(thread)
    assert "ended" in answer.words
    told = [each.words for each in world.slack.notified(world.ann)]
    assert "Still working" in told[0]
    assert told[1:] == [answer.words]
    assert "The answer is below." in before.words
    assert world.slack.reds == []
