"""Kill -9 at random moments while many people talk: the same promises, whatever the seed."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest

from tests.support.invariants import violations
from tests.support.world import World

PEOPLE = ("Ann", "Bob", "Cleo")
SCRIPTS = (
    "say hello",
    "plan look; act",
    "thoughts 3",
    "big 5000",
    "write notes.txt kept",
    "say first\nwrite more.txt kept\nsay last",
    "tools 5",
    "slow 1",
    "just words",
)


def talk(world: World, place: str, count: int, seed: str) -> None:
    """Say so many things in a place, one after another."""
    chance = random.Random(seed)
    for _ in range(count):
        world.say(place, chance.choice(SCRIPTS), speaker=chance.choice(PEOPLE))


def storm(folder: Path, seed: int, *, places: int, messages: int, kills: int) -> World:
    """Have people talk in many places while the bridge is killed, or sometimes told to leave."""
    chance = random.Random(seed)
    calm = threading.Event()
    hasty = {"GRACE_SECONDS": "0.3"}
    with World(folder, settings=hasty, new_delivery_ids=seed % 2 == 0) as world:
        names = [f"p{number}" for number in range(places)]
        talkers = [
            threading.Thread(target=talk, args=(world, name, messages, f"{seed} {name}"))
            for name in names
        ]
        for talker in talkers:
            talker.start()
        for _ in range(kills):
            calm.wait(chance.uniform(0.0, 1.2))
            chance.choice((world.kill, world.kill, world.kill, world.restart))()
            world.answer_asks()
        for talker in talkers:
            talker.join()
        world.settle()
        for name in names:
            world.say(name, "recall")
        world.settle()
        world.end()
        return world


def test_nothing_is_lost_or_doubled_when_the_bridge_is_killed_at_random_moments(
    tmp_path: Path,
) -> None:
    world = storm(tmp_path, 1, places=3, messages=4, kills=5)

    assert violations(world) == []
    assert forgotten(world) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 27))
def test_nothing_is_lost_or_doubled_in_a_long_storm(tmp_path: Path, seed: int) -> None:
    world = storm(tmp_path, seed, places=5, messages=8, kills=12)

    assert violations(world) == []
    assert forgotten(world) == []


def forgotten(world: World) -> list[str]:
    """List the words of completed turns that their agent does not recall."""
    return [
        said.word
        for said in world.said
        if said.word in "".join(post.text for post in world.turns(said.place)[:-1])
        and said.word not in world.turns(said.place)[-1].text
    ]
