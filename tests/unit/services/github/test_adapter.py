"""How an agent answers on GitHub, and what it does when GitHub says no or nothing."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from app.errors import PostDelayed, PostRejected
from app.model.inbound import Chore, Delivery, Heard
from app.model.posts import Note, NoteCode, PostContent, PostSend, PostSent
from app.model.types import ActivePlace, Speaker
from app.services.github.adapter import GitHubAdapter
from app.services.github.auth import GitHubApps
from app.services.github.events import Rerun
from app.services.github.transport import Pace
from sim.github.answers import Reply
from sim.github.hooks import Attempt, Event
from sim.github.state import Issue
from sim.github.world import SimulatedGithub
from tests.support.clock import ManualClock
from tests.support.github_desk import Desk

pytestmark = pytest.mark.anyio


def create(desk: Desk, issue: Issue, text: str = "", message_id: str = "") -> PostSend:
    content = PostContent(kind="turn", state="starting", text=text, message_id=message_id)
    return PostSend("create", desk.key(issue), "ab-1", content)


def finish(desk: Desk, issue: Issue, text: str, remote_id: str, message_id: str = "") -> PostSend:
    content = PostContent(kind="turn", state="done", text=text, message_id=message_id)
    return PostSend("finish", desk.key(issue), "ab-1", content, remote_id=remote_id)


def seen(desk: Desk, issue: Issue, text: str = "", message_id: str = "") -> PostSend:
    """Show the progress of a turn of which only a reaction can be seen, from before a restart."""
    content = PostContent(kind="turn", state="working", text=text, message_id=message_id)
    return PostSend("replace", desk.key(issue), "ab-1", content, remote_id=f"seen-{issue.number}")


def notice(desk: Desk, issue: Issue, text: str = "Look.") -> PostSend:
    content = PostContent(kind="notice", note=text)
    return PostSend("create", desk.key(issue), "ab-1", content)


def pull(desk: Desk, by: str = "ann") -> Issue:
    desk.github.git.commit("acme/widgets", "topic", {"a.py": "one\ntwo\n", "b.py": "b\n"}, "Change")
    return desk.github.open_pull(by, desk.repository, "A change", "topic")


def writes(desk: Desk) -> list[str]:
    return [
        f"{call.method} {call.path.rpartition('widgets/')[2]}"
        for call in desk.github.calls
        if call.method != "GET" and call.app not in {"app", ""}
    ]


async def test_a_short_turn_is_a_reaction_and_then_one_comment(desk: Desk) -> None:
    issue = desk.github.open_issue("ann", desk.repository, "Bug")
    said = desk.github.comment("ann", issue, "@claude-bridge look")

    sent = await desk.claude.send(create(desk, issue, message_id=f"comment-{said.id}"))
    assert len(issue.comments) == 1
    working = replace(seen(desk, issue), remote_id=sent.remote_id)
    assert await desk.claude.send(working) == PostSent(sent.remote_id)
    again = await desk.claude.send(
        finish(desk, issue, "Looked.", sent.remote_id, f"comment-{said.id}")
    )

    comment = issue.comments[-1]
    assert (sent.remote_id, again.remote_id) == ("seen-1", f"comment-{comment.id}")
    assert comment.body.startswith("Looked.")
    assert comment.edits == 0
    assert writes(desk) == [
        f"POST issues/comments/{said.id}/reactions",
        "POST issues/1/comments",
        f"POST issues/comments/{said.id}/reactions",
    ]
    assert said.reactions == [("claude-bridge[bot]", "eyes"), ("claude-bridge[bot]", "+1")]


async def test_a_long_turn_answers_in_a_new_comment_and_hides_its_progress(desk: Desk) -> None:
    issue = desk.github.open_issue("ann", desk.repository, "Bug")
    sent = await desk.claude.send(seen(desk, issue, "so far"))
    shown = await desk.claude.send(replace(seen(desk, issue, "more"), remote_id=sent.remote_id))
    assert sent.remote_id == shown.remote_id == f"comment-{issue.comments[0].id}"

    answered = await desk.claude.send(finish(desk, issue, "Looked.", sent.remote_id))

    progress, answer = issue.comments
    assert answered.remote_id == f"comment-{answer.id}"
    assert (progress.minimized, answer.minimized) == ("OUTDATED", "")
    assert "more" not in progress.body
    assert answer.body.startswith("Looked.")


async def test_neither_progress_nor_answer_is_written_twice_if_github_did_not_say(
    desk: Desk,
) -> None:
    issue = desk.github.open_issue("ann", desk.repository, "Bug")
    for post in (seen(desk, issue), finish(desk, issue, "Looked.", "seen-1")):
        desk.github.fail("POST", "/issues/1/comments$")
        with pytest.raises(httpx.HTTPError):
            await desk.claude.send(post)
        sent = await desk.claude.send(post)

    progress, answer = issue.comments
    assert sent.remote_id == f"comment-{answer.id}"
    assert (progress.minimized, answer.minimized) == ("OUTDATED", "")


async def test_the_answer_counts_although_github_does_not_hide_the_progress(desk: Desk) -> None:
    issue = desk.github.open_issue("ann", desk.repository, "Bug")
    sent = await desk.claude.send(seen(desk, issue))
    refused = {"data": None, "errors": [{"type": "FORBIDDEN", "message": "Not accessible"}]}
    desk.github.fail("POST", "/graphql$", Reply(200, refused))

    await desk.claude.send(finish(desk, issue, "Looked.", sent.remote_id))

    assert [each.minimized for each in issue.comments] == ["", ""]
    assert issue.comments[0].body.startswith("Done. The answer is in a new comment.")


async def test_a_comment_of_an_earlier_release_is_hidden_like_any_progress(desk: Desk) -> None:
    issue = desk.github.open_issue("ann", desk.repository, "Bug")
    bot, app = desk.apps["claude"].bot, desk.apps["claude"]
    old = desk.github.add_comment(issue, bot, "Working <!-- agent-bridge:ab-1 -->", app)
    progress = replace(seen(desk, issue), remote_id=f"comment-{old.id}")

    await desk.claude.send(progress)
    await desk.claude.send(finish(desk, issue, "Looked.", f"comment-{old.id}"))

    assert [each.minimized for each in issue.comments] == ["OUTDATED", ""]


async def test_a_question_is_put_to_the_person_who_asked(desk: Desk) -> None:
    issue = desk.github.open_issue("rae", desk.repository, "Bug")
    begun = create(desk, issue)
    await desk.claude.send(replace(begun, content=replace(begun.content, asker="ann")))
    later = replace(begun.content, asker="bob", state="queued")
    await desk.claude.send(replace(begun, marker="ab-3", content=later))
    content = PostContent(kind="ask", state="open", text="May I?", ask=7)

    await desk.claude.send(PostSend("create", desk.key(issue), "ab-2", content))

    told = [(each.login, each.reason) for each in desk.github.notifications]
    assert told == [("ann", "mention"), ("rae", "subscribed")]


async def test_a_turn_that_another_one_continues_says_nothing(desk: Desk) -> None:
    issue = desk.github.open_issue("ann", desk.repository, "Bug")
    content = PostContent(kind="turn", state="done", reason=Note(NoteCode.CONTINUED, "ann", "yes"))
    post = PostSend("finish", desk.key(issue), "ab-1", content, remote_id="seen-1")

    await desk.claude.send(post)
    assert issue.comments == []
    sent = await desk.claude.send(seen(desk, issue))
    await desk.claude.send(replace(post, remote_id=sent.remote_id))

    assert [each.minimized for each in issue.comments] == ["OUTDATED"]


async def test_a_comment_on_a_line_is_answered_under_it(desk: Desk) -> None:
    change = pull(desk, "claude-bridge[bot]")
    review = desk.github.review("ann", change, None, ("a.py", 2, "why two?"))

    said = f"review-{review.id}"
    sent = await desk.claude.send(create(desk, change, message_id=said))
    await desk.claude.send(finish(desk, change, "Because.", sent.remote_id, said))

    assert change.pull is not None
    asked, answer = change.pull.comments
    assert answer.reply_to == asked.id
    assert answer.body.startswith("Because.")
    assert asked.reactions == [("claude-bridge[bot]", "eyes"), ("claude-bridge[bot]", "+1")]
    assert change.comments == []
    assert asked.resolved_by == "", "nothing was pushed"


async def test_threads_are_resolved_by_the_fix_that_answers_them(desk: Desk) -> None:
    change = pull(desk, "claude-bridge[bot]")
    one = desk.github.review("ann", change, None, ("a.py", 2, "why two?"))
    two = desk.github.review("ann", change, "Hm.", ("a.py", 1, "a"), ("b.py", 1, "b"))
    assert change.pull is not None
    asked, on_a, on_b = change.pull.comments
    for review in (one, two):
        said, marker = f"review-{review.id}", f"ab-{review.id}"
        begun = replace(create(desk, change, message_id=said), marker=marker)
        sent = await desk.claude.send(begun)
        files = {"a.py": f"one\n{review.id}\n"}
        desk.github.push("claude-bridge[bot]", desk.repository, "topic", files)
        post = finish(desk, change, "Fixed.", sent.remote_id, said)
        await desk.claude.send(replace(post, marker=marker))

    resolved = [asked.resolved_by, on_a.resolved_by, on_b.resolved_by]
    assert resolved == ["claude-bridge", "claude-bridge", ""]


async def test_threads_of_other_peoples_pull_requests_are_left_to_them(desk: Desk) -> None:
    change = pull(desk)
    review = desk.github.review("ann", change, None, ("a.py", 2, "@claude-bridge why two?"))
    said = f"review-{review.id}"
    sent = await desk.claude.send(create(desk, change, message_id=said))
    desk.github.push("bob", desk.repository, "topic", {"a.py": "one\nthree\n"})

    await desk.claude.send(finish(desk, change, "Fixed.", sent.remote_id, said))

    assert change.pull is not None
    assert change.pull.comments[0].resolved_by == ""


async def test_a_review_of_several_comments_is_answered_in_the_conversation(desk: Desk) -> None:
    change = pull(desk, "claude-bridge[bot]")
    review = desk.github.review("ann", change, "Hm.", ("a.py", 1, "a"), ("a.py", 2, "b"))

    await desk.claude.send(finish(desk, change, "Yes.", "seen-1", f"review-{review.id}"))

    assert len(change.comments) == 1


async def test_a_long_answer_goes_on_in_further_comments_each_written_once(desk: Desk) -> None:
    issue = desk.github.open_issue("ann", desk.repository, "Bug")
    text = "word " * 30_000
    sent = await desk.claude.send(create(desk, issue))

    for _ in range(2):
        last = await desk.claude.send(finish(desk, issue, text, sent.remote_id))

    assert len(issue.comments) == 3
    assert last.consumed == len(text)


REVIEW = """Nearly, @rae.

```review
a.py:1-2: Why, @rae?
a.py:9: And where is nine?
```"""


async def test_an_answer_with_comments_on_lines_becomes_a_review(desk: Desk) -> None:
    change = pull(desk)
    sent = await desk.claude.send(create(desk, change))

    for _ in range(2):
        await desk.claude.send(finish(desk, change, REVIEW, sent.remote_id))

    assert change.pull is not None
    (review,), (remark,) = change.pull.reviews, change.pull.comments
    assert review.user is desk.apps["claude"].bot
    assert review.state == "commented"
    assert "Nearly, `@rae`.\n\n- `a.py:9`: And where is nine?" in (review.body or "")
    assert (remark.start_line, remark.line, remark.body) == (1, 2, "Why, `@rae`?")
    assert remark.review == review.id
    assert change.comments == []


async def test_a_review_whose_answer_was_lost_is_not_made_twice(desk: Desk) -> None:
    change = pull(desk)
    sent = await desk.claude.send(create(desk, change))
    desk.github.fail("POST", "/reviews$")

    with pytest.raises(httpx.HTTPError):
        await desk.claude.send(finish(desk, change, REVIEW, sent.remote_id))
    await desk.claude.send(finish(desk, change, REVIEW, sent.remote_id))

    assert change.pull is not None
    assert len(change.pull.reviews) == 1
    assert change.comments == []


async def test_a_review_that_github_does_not_take_is_read_in_the_comment(desk: Desk) -> None:
    change = pull(desk)
    sent = await desk.claude.send(create(desk, change))
    desk.github.fail("POST", "/reviews$", Reply(422, {"message": "Unprocessable"}))

    await desk.claude.send(finish(desk, change, REVIEW, sent.remote_id))

    assert change.pull is not None
    assert change.pull.reviews == []
    assert "a.py:9: And where is nine?" in change.comments[0].body


@pytest.mark.parametrize("state", ["working", "stopped"])
async def test_an_unfinished_answer_is_no_review_yet(desk: Desk, state: str) -> None:
    change = pull(desk)
    sent = await desk.claude.send(create(desk, change))
    content = PostContent(kind="turn", state=state, text=REVIEW)

    await desk.claude.send(PostSend("replace", desk.key(change), "ab-1", content, sent.remote_id))

    assert change.pull is not None
    assert change.pull.reviews == []


async def test_an_issue_has_no_lines_to_comment_on(desk: Desk) -> None:
    issue = desk.github.open_issue("ann", desk.repository, "Bug")
    sent = await desk.claude.send(create(desk, issue))

    await desk.claude.send(finish(desk, issue, REVIEW, sent.remote_id))

    assert "```review" in issue.comments[0].body


async def test_a_comment_whose_answer_was_lost_is_found_again(desk: Desk) -> None:
    issue = desk.github.open_issue("ann", desk.repository, "Bug")
    desk.github.fail("POST", "/comments$")

    with pytest.raises(httpx.HTTPError):
        await desk.claude.send(notice(desk, issue))
    found = await desk.claude.find(desk.key(issue), "ab-1")

    assert found is not None
    assert found.remote_id == f"comment-{issue.comments[0].id}"
    assert await desk.claude.find(desk.key(issue), "ab-2") is None


async def test_a_comment_is_looked_for_only_when_the_agent_knows_who_it_is(desk: Desk) -> None:
    issue = desk.github.open_issue("ann", desk.repository, "Bug")
    await desk.claude.send(notice(desk, issue))
    ours = desk.directory.known["claude"]
    new = GitHubApps(("claude", "codex"))
    started = GitHubAdapter("claude", desk.connected["claude"], new, desk.clock)

    looking = asyncio.create_task(started.find(desk.key(issue), "ab-1"))
    done, _ = await asyncio.wait([looking], timeout=0.3)
    assert done == set()
    new.introduce(ours)

    found = await looking
    assert found is not None
    assert found.remote_id == f"comment-{issue.comments[0].id}"


async def test_a_marker_that_somebody_else_wrote_is_not_taken_for_ours(desk: Desk) -> None:
    issue = desk.github.open_issue("ann", desk.repository, "Bug")
    desk.github.comment("mallory", issue, "x <!-- agent-bridge:ab-1 -->")
    desk.github.comment("codex-bridge[bot]", issue, "x <!-- agent-bridge:ab-1 -->")

    assert await desk.claude.find(desk.key(issue), "ab-1") is None


async def test_the_answer_is_given_although_somebody_deleted_its_comment(desk: Desk) -> None:
    issue = desk.github.open_issue("ann", desk.repository, "Bug")
    sent = await desk.claude.send(seen(desk, issue))
    issue.comments.clear()

    again = await desk.claude.send(finish(desk, issue, "Here.", sent.remote_id))

    assert issue.comments[0].body.startswith("Here.")
    assert again.remote_id == f"comment-{issue.comments[0].id}"


async def test_the_check_of_a_turn_ends_although_somebody_deleted_its_comment(desk: Desk) -> None:
    change = pull(desk)
    sent = await desk.claude.send(create(desk, change))
    (check,) = desk.repository.checks
    assert check.status == "in_progress"
    change.comments.clear()

    await desk.claude.send(finish(desk, change, "Here.", sent.remote_id))

    assert (check.status, check.conclusion) == ("completed", "success")
    assert len(desk.repository.checks) == 1


async def test_a_check_that_github_did_not_let_end_ends_with_the_next_one(desk: Desk) -> None:
    change = pull(desk)
    sent = await desk.claude.send(create(desk, change))
    desk.github.fail("PATCH", "/check-runs/", Reply(502, {"message": "Server Error"}))
    await desk.claude.send(finish(desk, change, "Here.", sent.remote_id))
    (first,) = desk.repository.checks
    assert first.status == "in_progress"

    sent = await desk.claude.send(create(desk, change))
    await desk.claude.send(finish(desk, change, "Again.", sent.remote_id))

    assert {each.status for each in desk.repository.checks} == {"completed"}


async def test_each_answer_begins_a_new_check_and_all_of_them_end_also_after_a_restart(
    desk: Desk,
) -> None:
    change = pull(desk)
    begun = await desk.claude.send(create(desk, change))
    asked = PostContent(kind="ask", state="open", text="May I?", ask=7)
    for state in ("open", "answered"):
        post = PostSend("create", desk.key(change), "ab-2", replace(asked, state=state))
        await desk.claude.send(post)
    first, second = desk.repository.checks
    assert (first.status, second.status) == ("completed", "in_progress")
    desk.claude._poster._board._open.clear()  # as a restart does

    await desk.claude.send(finish(desk, change, "Here.", begun.remote_id))

    assert (second.status, second.conclusion) == ("completed", "success")


async def test_progress_remembers_the_latest_check_of_its_turn(desk: Desk) -> None:
    change = pull(desk)
    begun = await desk.claude.send(create(desk, change))
    asked = PostContent(kind="ask", state="open", text="May I?", ask=7)
    for state in ("open", "answered"):
        post = PostSend("create", desk.key(change), "ab-2", replace(asked, state=state))
        await desk.claude.send(post)

    shown = await desk.claude.send(replace(seen(desk, change), remote_id=begun.remote_id))

    first, second = desk.repository.checks
    assert begun.remote_id == f"seen-1@check-{first.id}"
    assert shown.remote_id == f"seen-1@check-{second.id}"


async def test_checks_that_are_to_run_again_show_a_turn_that_is_at_work(desk: Desk) -> None:
    change = pull(desk)
    begun = await desk.claude.send(create(desk, change))
    (first,) = desk.repository.checks

    await desk.claude.do_chore(Chore(Rerun("acme/widgets", first.sha)))

    _, second = desk.repository.checks
    assert (first.status, second.status) == ("completed", "in_progress")
    await desk.claude.send(finish(desk, change, "Here.", begun.remote_id))
    assert (second.status, second.conclusion) == ("completed", "success")


async def test_a_turn_that_waits_its_turn_is_no_check_yet(desk: Desk) -> None:
    change = pull(desk)
    post = create(desk, change)

    await desk.claude.send(replace(post, content=replace(post.content, state="queued")))

    assert desk.repository.checks == []


async def test_a_place_that_is_closed_to_us_is_a_lasting_refusal(desk: Desk) -> None:
    issue = desk.github.open_issue("ann", desk.repository, "Bug")
    issue.locked = True

    with pytest.raises(PostRejected):
        await desk.claude.send(notice(desk, issue))
    desk.repository.issues.clear()
    with pytest.raises(PostRejected):
        await desk.claude.send(notice(desk, issue))


async def test_how_long_github_wants_us_to_wait_is_respected_by_all(desk: Desk) -> None:
    issue = desk.github.open_issue("ann", desk.repository, "Bug")
    limited = Reply(
        403, {"message": "You have exceeded a secondary rate limit"}, {"retry-after": "7"}
    )
    desk.github.fail("POST", "/comments$", limited)

    with pytest.raises(PostDelayed) as first:
        await desk.claude.send(notice(desk, issue))
    calls = len(desk.github.calls)
    with pytest.raises(PostDelayed) as second:
        await desk.claude.send(notice(desk, issue))

    assert first.value.retry_after == 7
    assert 0 < (second.value.retry_after or 0) <= 7
    assert len(desk.github.calls) == calls


@pytest.mark.long
async def test_what_all_sessions_write_together_stays_under_githubs_limits(tmp_path: Path) -> None:
    clock = ManualClock()
    with SimulatedGithub(tmp_path, clock.now) as github:
        desk = Desk(github, clock)
        issue = github.open_issue("ann", desk.repository, "Bug")
        written = 0
        while written < 160:
            try:
                await desk.claude.send(notice(desk, issue))
                written += 1
            except PostDelayed as error:
                await clock.advance(error.retry_after or 1)
        await desk.close()

    assert clock.monotonic() >= 120
    assert not [call for call in github.calls if call.status in {403, 429}]


def test_in_any_hour_less_is_written_than_github_allows() -> None:
    pace, now = Pace(), 0.0
    written: list[float] = []

    while now < 3 * 3600:
        wait = pace.wait(now)
        now += wait
        pace.wrote(now)
        written.append(now)

    assert all(b - a >= 60 for a, b in zip(written, written[80:], strict=False))
    assert all(b - a >= 3600 for a, b in zip(written, written[500:], strict=False))
    assert len(written) > 1_000


async def test_progress_leaves_room_for_answers(desk: Desk) -> None:
    issue = desk.github.open_issue("ann", desk.repository, "Bug")
    sent = await desk.claude.send(seen(desk, issue))
    content = PostContent(kind="turn", state="working", text="so far")
    progress = PostSend("replace", desk.key(issue), "ab-1", content, sent.remote_id)

    shown = 0
    with suppress(PostDelayed):
        while shown < 100:
            await desk.claude.send(progress)
            shown += 1
    await desk.claude.send(finish(desk, issue, "The answer.", sent.remote_id))

    assert shown < 80
    assert issue.comments[1].body.startswith("The answer.")


async def test_a_token_that_github_does_not_take_any_more_is_replaced(desk: Desk) -> None:
    issue = desk.github.open_issue("ann", desk.repository, "Bug")
    await desk.claude.send(notice(desk, issue))
    desk.github.tokens.clear()

    await desk.claude.send(notice(desk, issue))

    assert len(issue.comments) == 2


async def test_tokens_reach_one_repository_with_few_permissions_and_are_kept_secret(
    desk: Desk,
) -> None:
    issue = desk.github.open_issue("ann", desk.repository, "Bug")
    await desk.claude.send(notice(desk, issue))
    await desk.claude.send(notice(desk, issue))

    (token,) = desk.github.tokens.values()
    assert token.repositories == {desk.repository.id}
    assert token.permissions == {"issues": "write", "pull_requests": "write", "metadata": "read"}
    assert desk.secrets == [token.value]


async def test_tokens_are_renewed_before_they_end(tmp_path: Path) -> None:
    clock = ManualClock()
    with SimulatedGithub(tmp_path, clock.now) as github:
        desk = Desk(github, clock)
        issue = github.open_issue("ann", desk.repository, "Bug")
        for _ in range(4):
            await desk.claude.send(notice(desk, issue))
            await clock.advance(52 * 60)
        await desk.close()

    assert len(github.tokens) == 4
    assert not [call for call in github.calls if call.status == 401]


async def test_what_was_said_before_comes_in_order_without_the_readers_own(desk: Desk) -> None:
    issue = desk.github.open_issue("mallory", desk.repository, "Bug", "It fails. <!-- evil -->")
    desk.github.comment("rae", issue, "Here too.")
    desk.github.comment("claude-bridge[bot]", issue, "I look.")
    desk.github.comment("codex-bridge[bot]", issue, "I found it.")
    last = desk.github.comment("ann", issue, "@claude-bridge fix it")
    desk.github.comment("ann", issue, "later")

    said = await desk.claude.earlier(desk.key(issue), f"comment-{last.id}")

    assert [(each.speaker.name, each.speaker.kind, each.text) for each in said] == [
        ("mallory", "person", "Bug\n\nIt fails. <!-- evil -->"),
        ("rae", "person", "Here too."),
        ("codex", "agent", "I found it."),
    ]


async def test_an_edit_that_adds_the_mention_comes_after_all_that_was_said(desk: Desk) -> None:
    issue = desk.github.open_issue("ann", desk.repository, "Bug", "It fails.")
    first = desk.github.comment("ann", issue, "please look")
    desk.github.comment("rae", issue, "It is the cache.")
    desk.github.edit_comment("ann", issue, first, "@claude-bridge please look")
    desk.github.edit_issue("ann", issue, "@claude-bridge it fails.")

    *_, by_comment, by_issue = await desk.heard()
    after_comment = await desk.claude.earlier(desk.key(issue), by_comment.message_id)
    after_issue = await desk.claude.earlier(desk.key(issue), by_issue.message_id)

    told = [[each.text for each in said] for said in (after_comment, after_issue)]
    assert told[0] == ["Bug\n\n@claude-bridge it fails.", "It is the cache."]
    assert told[1] == ["@claude-bridge please look", "It is the cache."]


async def test_what_was_said_on_lines_before_comes_with_the_line(desk: Desk) -> None:
    change = pull(desk)
    desk.github.review("codex-bridge[bot]", change, "One thing.", ("a.py", 2, "two is wrong"))
    last = desk.github.comment("ann", change, "@claude-bridge fix what codex found")

    said = await desk.claude.earlier(desk.key(change), f"comment-{last.id}")

    assert [each.text for each in said][1:] == ["One thing.", "`a.py`: `+two`\ntwo is wrong"]


async def test_a_whisper_names_whom_it_is_for(desk: Desk) -> None:
    issue = desk.github.open_issue("ann", desk.repository, "Bug")

    await desk.claude.whisper(desk.key(issue), Speaker("rae", "rae"), "You may not.")

    assert issue.comments[0].body == "@rae You may not."


async def find(desk: Desk, since: float = 0.0) -> list[Delivery]:
    """Read what GitHub has since a time."""
    return [
        delivery for source in await desk.claude.sources() async for delivery in source.find(since)
    ]


async def test_what_never_arrived_is_found_under_the_id_it_had(desk: Desk) -> None:
    desk.github.hooks.held = None
    issue = desk.github.open_issue("ann", desk.repository, "Bug")
    desk.github.comment("ann", issue, "@claude-bridge look")
    desk.github.quiet()
    await desk.claude._sweep.introduce()

    found = await find(desk)

    attempts = [*reversed(desk.github.hooks.of(desk.apps["claude"]))]
    assert [each.delivery_id for each in found] == [each.event.guid for each in attempts]
    assert [each.sent_at for each in found] == pytest.approx([each.at for each in attempts], abs=1)
    assert desk.claude.parse(found[-1]) is not None
    assert "last delivery failed" in desk.claude.trouble
    assert await find(desk, desk.clock.now() + 60) == []


async def test_what_was_missed_is_found_behind_thousands_of_other_deliveries(desk: Desk) -> None:
    issue = desk.github.open_issue("ann", desk.repository, "Bug")
    desk.github.comment("ann", issue, "@claude-bridge look")
    _, missed = desk.events()
    others = [Event(missed.app, "push", {}) for _ in range(1_001)]
    log = [Attempt(missed, desk.clock.now(), 502, redelivery=False)]
    log += [Attempt(each, desk.clock.now(), 200, redelivery=False) for each in others]
    desk.github.hooks.log = log

    assert [each.delivery_id for each in await find(desk)] == [missed.guid]


async def test_a_comment_that_no_delivery_tells_of_is_found_in_its_conversation(desk: Desk) -> None:
    issue = desk.github.open_issue("ann", desk.repository, "Bug")
    desk.github.comment("ann", issue, "@claude-bridge look")
    heard = desk.claude.parse(desk.delivery(desk.events()[-1]))
    await desk.claude.send(
        PostSend(
            "create", desk.key(issue), "ab-1", PostContent(kind="notice", note="My own words.")
        )
    )
    desk.in_use.append(ActivePlace(desk.key(issue), "", "", desk.clock.now()))

    [_, source] = await desk.claude.sources()
    found = [each async for each in source.find(0.0)]

    again = [desk.claude.parse(each) for each in found]
    assert isinstance(heard, Heard)
    assert [each.message_id for each in again if isinstance(each, Heard)] == [heard.message_id]
    assert [each async for each in source.find(desk.clock.now() + 60)] == []


async def test_who_the_bot_is_is_asked_where_the_app_works_and_its_token_is_kept_secret(
    desk: Desk,
) -> None:
    desk.github.installations[0].suspended = True
    desk.github.install(desk.apps["claude"], desk.github.repository("other/thing"))

    await desk.claude._sweep.introduce()

    assert desk.secrets == list(desk.github.tokens)
    assert desk.secrets != []
    known = desk.directory.known.get("claude")
    assert known is not None
    assert known.bot_id == desk.apps["claude"].bot.id
