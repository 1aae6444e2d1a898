"""Sessions that people return to: parked meanwhile, and going on where they were."""

from __future__ import annotations

import pytest

from tests.support.observe import Observed, demo
from tests.support.platform import Platform
from tests.support.variants import quick

LIVE = 4


@pytest.mark.long
@pytest.mark.parametrize("sessions", quick(1, [8, 200]))
def test_many_sessions_share_four_processes_and_each_goes_on_where_it_was(
    tmp_path_factory: pytest.TempPathFactory, sessions: int
) -> None:
    settings = {"MAX_TURNS": str(LIVE), "MAX_PROCESSES": str(LIVE)}
    places = [f"place-{number}" for number in range(sessions)]
    with (
        Platform() as platform,
        Observed(
            tmp_path_factory.mktemp("many"), platform, agents={"demo": demo()}, settings=settings
        ) as bridge,
    ):
        for place in places:
            bridge.begin(place, f"say I am {place}")
        assert [bridge.end(place, 0)["text"] for place in places] == [f"I am {p}" for p in places]
        assert len(bridge.agent_pids()) <= LIVE

        for place in places:
            bridge.begin(place, "recall")
        told = [bridge.end(place, 1) for place in places]

        assert [turn["text"] for turn in told] == [f"You told me:\n- say I am {p}" for p in places]
        assert {turn["note"] for turn in told} == {""}
        assert len(bridge.agent_pids()) <= LIVE


def test_an_agent_is_parked_while_it_waits_and_the_answer_goes_on_with_its_work(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    agents = {"demo": demo(idle_minutes=0.001)}
    folder = tmp_path_factory.mktemp("parked")
    with Platform() as platform, Observed(folder, platform, agents=agents) as bridge:
        bridge.begin("desk", "write notes.txt done")
        (ask,) = bridge.open_asks(1)
        state = "select state from turn order by id"
        bridge.wait(lambda: bridge.rows(state) == [("parked",)], "it is not parked")
        bridge.gone("demo")
        session = bridge.session("desk")
        assert bridge.http.get(f"/api/v1/sessions/{session}").json()["state"] == "waiting"

        bridge.answer(ask)

        assert bridge.end("desk", 1)["text"] == "Wrote notes.txt."
        assert bridge.rows(state) == [("done",), ("done",)]
        assert (bridge.workspace("demo", session) / "notes.txt").read_text() == "done\n"
        assert bridge.rows("select count(*), max(answered_by) from ask") == [(1, "Ann")]


@pytest.mark.slow
def test_a_parked_ask_survives_a_restart(tmp_path_factory: pytest.TempPathFactory) -> None:
    agents = {"demo": demo(idle_minutes=0.001)}
    folder = tmp_path_factory.mktemp("restarted")
    with Platform() as platform, Observed(folder, platform, agents=agents) as bridge:
        bridge.begin("desk", "run echo hello")
        (ask,) = bridge.open_asks(1)
        state = "select state from turn order by id"
        bridge.wait(lambda: bridge.rows(state) == [("parked",)], "it is not parked")
        assert bridge.stop() == 0
        assert bridge.process is not None
        assert bridge.process.stdout is not None
        bridge.process.stdout.close()
        bridge.start()

        bridge.answer(ask)

        assert "ended with status 0" in bridge.end("desk", 1)["text"]
