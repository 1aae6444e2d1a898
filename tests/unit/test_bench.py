"""The bench: its figures, its table and plot, and the parts that need no quiet machine."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from app.model.inbound import Delivery, Heard
from app.model.keys import PlaceKey
from app.services.slack.events import FrameReader
from app.store.database import Database, sqlite_url
from app.store.stores import Stores
from app.store.tables import metadata
from bench import report
from bench.bridge import AGENT, BenchAdapter
from bench.figures import Goal, Row, ratios
from bench.frames import frames
from bench.history import fill, lengthen
from bench.stream import through_blocking_loop
from bench.webhooks import BODY_BYTES, comments

ROWS = [
    Row("accept", "a route", 0.61, " x", Goal("at least", 0.5), "6/s against 10/s"),
    Row("start <cold>", "by hand", 1.25, " x", Goal("at most", 1.1), "25 ms against 20 ms"),
    Row("reach of the load", "a route", 1.4, " x", None, "14/s against 10/s"),
]


@pytest.mark.parametrize(
    ("goal", "figure", "reached", "closeness"),
    [
        (Goal("at least", 0.5), 0.25, False, 0.5),
        (Goal("at least", 8.0), 16.0, True, 2.0),
        (Goal("at most", 1.0), 0.5, True, 2.0),
        (Goal("at most", 1.1), 2.2, False, 0.5),
    ],
)
def test_a_goal_knows_how_close_a_figure_is(
    goal: Goal, figure: float, reached: bool, closeness: float
) -> None:
    assert goal.reached(figure) is reached
    assert goal.closeness(figure) == pytest.approx(closeness)


def test_the_usual_ratio_is_that_of_rounds_side_by_side() -> None:
    assert ratios([2, 9, 6], [1, 3, 1]) == 3


def test_a_new_table_replaces_the_old_one_and_nothing_else() -> None:
    once = report.insert(f"above\n{report.BEGIN}{report.END}below\n", "| old |\n")
    twice = report.insert(once, report.markdown(ROWS, "a machine"))

    assert twice.startswith("above\n")
    assert twice.endswith("below\n")
    assert "| old |" not in twice
    assert "| start <cold> | by hand | 1.25 x | at most 1.1 x | not yet |" in twice


def test_the_frames_of_the_load_are_those_of_slack_and_never_the_same() -> None:
    delivered = [
        Delivery("slack:demo", str(number), None, {}, frame.encode(), 0.0)
        for number, (_, frame) in enumerate(frames(3))
    ]
    heard = [FrameReader("demo", (), lambda _: []).read(each) for each in delivered]

    assert [each.overheard for each in heard if isinstance(each, Heard)] == [True] * 3
    assert len({each.body for each in delivered}) == 3


def test_the_plot_has_a_bar_for_every_goal(tmp_path: Path) -> None:
    report.plot(ROWS, tmp_path / "plot.svg")

    drawing = ElementTree.parse(tmp_path / "plot.svg").getroot()
    bars = drawing.findall("{http://www.w3.org/2000/svg}rect")
    assert len(bars) == 1 + 2, "the background and one for each goal"


def test_the_webhooks_of_the_bench_are_signed_and_all_different() -> None:
    adapter = BenchAdapter(AGENT)
    deliveries = []
    for request in comments(2, "seed", 80):
        head, _, body = request.partition(b"\r\n\r\n")
        lines = (line.partition(b": ") for line in head.split(b"\r\n")[1:])
        deliveries.append(adapter.verify({n.lower(): v for n, _, v in lines}, body, 0.0))

    assert len({delivery.signature for delivery in deliveries}) == 2
    assert len({delivery.delivery_id for delivery in deliveries}) == 2
    assert abs(len(deliveries[0].body) - BODY_BYTES) < 100
    assert adapter.parse(deliveries[0]) is None


def test_the_filled_store_holds_parked_sessions(tmp_path: Path) -> None:
    database = Database(sqlite_url(tmp_path))
    metadata.create_all(database.engine)

    fill(tmp_path, 3)

    stores = Stores.on(database, lambda: 0.0)
    (session,) = stores.sessions.in_place(PlaceKey("web", "thread-3"))
    post = stores.posts.of_turn(3)
    database.engine.dispose()
    assert session.state == "parked"
    assert post is not None
    assert post.content.state == "done"


async def test_a_thread_of_the_filled_store_can_be_made_long(tmp_path: Path) -> None:
    database = Database(sqlite_url(tmp_path))
    metadata.create_all(database.engine)
    fill(tmp_path, 3)

    lengthen(tmp_path, 2, [{"text": "more"}, {"kind": "tool", "data": {"call": "1"}}])

    stores = Stores.on(database, lambda: 0.0)
    rows = await stores.transcript.read_place(PlaceKey("web", "thread-2"), after=0, limit=10)
    database.engine.dispose()
    assert [row.kind for row in rows] == ["message", "text", "text", "tool"]
    assert {row.turn for row in rows[1:]} == {2}


def test_the_blocking_loop_reads_every_update(tmp_path: Path) -> None:
    assert through_blocking_loop(300, tmp_path).wall > 0
