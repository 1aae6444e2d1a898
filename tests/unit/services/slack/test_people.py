"""People on Slack: names are looked up again after a while."""

from __future__ import annotations

from typing import Any

import pytest

from app.services.slack.api import SlackApi
from app.services.slack.people import CACHE_SECONDS, People
from tests.support.clock import ManualClock

pytestmark = pytest.mark.anyio


class Users(SlackApi):
    """A Slack that knows one user, who may change names."""

    def __init__(self) -> None:
        super().__init__("http://127.0.0.1:9/", "xoxb-1")
        self.name = "Ann"

    async def read(self, method: str, **arguments: Any) -> dict[str, Any]:
        return {"user": {"id": arguments["user"], "team_id": "T1", "real_name": self.name}}


async def test_a_new_name_is_known_after_the_cache_time() -> None:
    slack, clock = Users(), ManualClock()
    people = People(slack, clock)

    before = await people.names(["U1"], "T1")
    slack.name = "Anna"
    cached = await people.names(["U1"], "T1")
    await clock.advance(CACHE_SECONDS)
    after = await people.names(["U1"], "T1")

    assert (before, cached, after) == ({"U1": "Ann"}, {"U1": "Ann"}, {"U1": "Anna"})
