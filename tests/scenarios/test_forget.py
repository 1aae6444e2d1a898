"""A person is forgotten: their words and names go, the conversations of others stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import canary
from tests.support.world import World

pytestmark = pytest.mark.timeout(180)
"""A bridge starts, works, is searched byte by byte, and in one story starts again."""

WORDS = "Pelicans are my favourites."


@pytest.mark.long
def test_nothing_names_a_person_who_is_forgotten(tmp_path: Path) -> None:
    with World(tmp_path, entry={"mode": "free", "memory": "auto"}) as world:
        bridge = world.bridge
        world.say("t1", "say hello", speaker="Ann")
        world.settle()
        world.say("t1", f"{WORDS}\nnote Bobby-Tables likes it", speaker="Bobby-Tables")
        world.settle()
        world.say("t1", "say thanks to Bobby-Tables", speaker="Ann")
        world.settle()
        file = bridge.http.put(
            "/api/v1/agents/demo/files/MEMORY.md", json={"text": "Bobby-Tables has a dog."}
        )
        assert file.is_success
        (found,) = bridge.http.get("/api/v1/people", params={"q": "bobby"}).json()["items"]
        assert found["messages"] == 1

        done = bridge.http.delete(f"/api/v1/people/{found['service']}/{found['id']}", timeout=60)

        assert done.status_code == 200, done.text
        assert [each["why"] for each in done.json()["left"]] == ["theirs"]
        for word in (WORDS, "Bobby-Tables"):
            assert canary.find(bridge.data_dir, word, but=("reserve",)) == []
            assert canary.find_sealed(bridge.data_dir, word) == []
        rows = bridge.rows(
            "select speaker, text from transcript where kind = 'message' order by id"
        )
        (_, [pseudonym, words], [_, thanks]) = rows
        assert pseudonym.startswith("person-")
        assert words == "[forgotten]"
        assert thanks.startswith(f"say thanks to {pseudonym}\n")
        again = bridge.http.delete(f"/api/v1/people/{found['service']}/{found['id']}")
        assert again.status_code == 404
        world.say("t1", "say on", speaker="Ann")
        world.settle()
        assert world.turns("t1")[-1].content["text"].startswith("on")
