"""What Linear delivers: once, twice, late, forged, or while nobody was there."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from sim.linear import LinearSession
from tests.support.linear import LinearWorld

KEPT = "select count(*) from delivery where delivery_id = ?"
PROMPTED = "select count(*) from turn where state = 'prompted'"
UNREAD = "select count(*) from delivery where state = 'new'"


def event(world: LinearWorld, session: LinearSession) -> dict[str, object]:
    """Write the event that a session was created."""
    return world.linear.views.session_event(session, "created")


def test_a_repeated_delivery_starts_nothing_twice(tmp_path: Path) -> None:
    with LinearWorld(tmp_path) as world:
        session = world.assign("say once")
        (delivery,) = world.linear.hooks.sent
        assert delivery.answers == [200]

        again = world.linear.hooks.repeat(delivery)
        # The same news under another id, as if Linear had made a second event of it.
        world.linear.hooks.send(world.app, event(world, session))
        world.wait_end(session)
        world.bridge.wait(lambda: world.bridge.rows(UNREAD) == [(0,)], "a delivery is unread")

        assert again == 200
        assert session.response == "once"
        assert world.turns() == 1


def test_what_is_not_linears_or_not_for_this_agent_starts_nothing(tmp_path: Path) -> None:
    with LinearWorld(tmp_path, agents=("demo", "twin")) as world:
        linear, app = world.linear, world.app
        session = world.assign("say hello")
        world.wait_end(session)
        linear.wait(lambda: linear.fields().count("agentSessions") == 2)
        genuine = event(world, session)
        now = int(linear.workspace.now() * 1000)

        sent = [
            linear.hooks.send(app, genuine, secret="a wrong secret"),
            linear.hooks.send(app, genuine, secret=world.apps["twin"].webhook_secret),
            linear.hooks.send(app, {**genuine, "organizationId": "another"}),
            linear.hooks.send(app, {**genuine, "appUserId": world.apps["twin"].user.id}),
            linear.hooks.send(app, {**genuine, "webhookTimestamp": now - 120_000}),
            linear.hooks.send(app, {**genuine, "webhookTimestamp": now + 120_000}),
            linear.hooks.send(app, {**genuine, "webhookTimestamp": None}),
        ]

        # What is signed with the agent's secret is from Linear: an error would count as a failure.
        assert [delivery.answers for delivery in sent] == [[401], [401], *[[200]] * 5]
        names = [delivery.headers["Linear-Delivery"] for delivery in sent]
        assert [world.bridge.rows(KEPT, name) for name in names] == [[(0,)]] * len(names)
        assert world.turns() == 1


def asks(session: LinearSession) -> bool:
    """Tell whether the agent asks something in a session."""
    return bool(session.of_type("elicitation"))


@pytest.mark.long
def test_an_outage_of_an_hour_leaves_the_webhook_on_and_handles_every_event_once(
    tmp_path: Path,
) -> None:
    with LinearWorld(tmp_path) as world:
        linear = world.linear
        linear.behind = 8 * 3600.0
        world.bridge.kill()
        sessions = [world.assign(f"say number {at}") for at in range(4)]
        linear.pass_time(600.0)
        assert [delivery.answers for delivery in linear.hooks.sent] == [[0, 0]] * 4

        linear.pass_time(2400.0)
        world.bridge.start()
        for session in sessions:
            # Its time is many hours behind: what is found so late is asked about.
            linear.wait(partial(asks, session))
            linear.reply(session, world.ann, "Yes, do it")
            world.wait_end(session)
        linear.pass_time(linear.behind)
        late = world.assign("say right away")
        world.wait_end(late)

        assert world.app.hook_enabled
        assert [delivery.answers for delivery in linear.hooks.sent] == [[0, 0, 200]] * 4 + [
            [200]
        ] * 5
        said = [session.response.partition("\n")[0] for session in sessions]
        assert said == [f"number {at}" for at in range(4)]
        assert late.response == "right away"
        assert world.turns() == 5


def test_a_bridge_that_dies_after_the_acknowledgement_goes_on_when_it_is_back(
    tmp_path: Path,
) -> None:
    with LinearWorld(tmp_path) as world:
        world.bridge.arm("ack", "after")
        session = world.assign("say still here")
        world.bridge.wait_dead()

        world.bridge.start()
        world.wait_end(session)

        assert session.response == "still here"
        assert world.turns() == 1


@pytest.mark.slow
def test_an_issue_that_was_taken_away_while_the_bridge_was_down_is_not_worked_on(
    tmp_path: Path,
) -> None:
    with LinearWorld(tmp_path) as world:
        working = world.assign("hold never")
        world.bridge.wait(lambda: world.bridge.rows(PROMPTED) == [(1,)], "never prompted")
        world.bridge.kill()
        missed = world.assign("say never")
        for session in (working, missed):
            world.linear.undelegate(session.issue, world.ann)

        world.bridge.start()
        world.wait_end(working)
        world.bridge.wait(lambda: world.bridge.rows(UNREAD) == [(0,)], "a delivery is unread")

        assert working.response.endswith("Stopped.")
        assert missed.of_type("response") == []
        assert world.turns() == 1


def test_what_happened_while_the_bridge_was_down_is_dealt_with_at_the_next_start(
    tmp_path: Path,
) -> None:
    with LinearWorld(tmp_path) as world:
        world.linear.wait(lambda: "agentSessions" in world.linear.fields())
        world.bridge.kill()
        session = world.assign("say better late")
        world.linear.reply(session, world.ann, "say than never")
        assert [delivery.answers for delivery in world.linear.hooks.sent] == [[0], [0]]

        world.bridge.start()
        world.linear.wait(lambda: "than never" in str([a.body for a in session.activities[1:]]))
        world.linear.wait(lambda: session.status == "complete")
        world.bridge.kill()
        looked = world.linear.fields().count("agentSessions")
        world.bridge.start()
        world.linear.wait(lambda: world.linear.fields().count("agentSessions") > looked)
        world.bridge.wait(lambda: world.bridge.rows(UNREAD) == [(0,)], "a delivery is unread")

        said = "\n".join(answer.body for answer in session.of_type("response"))
        assert said.count("better late") == 1
        assert said.count("than never") == 1
