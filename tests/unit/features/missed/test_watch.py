"""How one adapter is compared with its platform: what is due, how far back, how often."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typing_extensions import override

from app.core.adapters import Source
from app.errors import PostDelayed
from app.features.missed.watch import BUDGET, GRACE_SECONDS, LIST_SECONDS, PAUSE_SECONDS, Watch
from app.model.inbound import Decision, Delivery, Gap, Heard
from app.model.keys import PlaceKey
from app.model.types import Speaker
from app.services.web.adapter import WebAdapter
from app.store.stores import Stores
from tests.support.clock import START, ManualClock
from tests.support.memory import open_stores

pytestmark = pytest.mark.anyio

MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0


@dataclass
class Platform(WebAdapter):
    """A platform with channels, where people speak."""

    clock: ManualClock
    used: dict[str, float] = field(default_factory=dict)
    """When each channel was used, by its name."""
    said: list[tuple[str, float]] = field(default_factory=list)
    read: list[tuple[float, str, float]] = field(default_factory=list)
    """When which channel was read, since when."""
    fault: Exception | None = None

    def __post_init__(self) -> None:
        super().__init__("claude")

    __hash__ = object.__hash__

    @override
    async def sources(self) -> Sequence[Source]:
        return [Source(name, self._reader(name), used) for name, used in self.used.items()]

    def _reader(self, name: str) -> Any:
        async def find(since: float) -> AsyncGenerator[Delivery, None]:
            self.read.append((self.clock.monotonic(), name, since))
            if self.fault is not None:
                raise self.fault
            for channel, at in self.said:
                if channel == name and at > since:
                    body = f"{channel} {at}".encode()
                    yield Delivery("web:claude", f"missed:{channel}:{at}", None, {}, body, 0, 0, at)

        return find

    @override
    def parse(self, delivery: Delivery) -> Heard:
        name = delivery.body.decode()
        return Heard(PlaceKey("web", name), name, name, Speaker("1", "Ann"), name)

    def busiest_minute(self) -> int:
        """Count the reads of the minute that had most."""
        times = [at for at, _, _ in self.read]
        return max(sum(begin <= at < begin + MINUTE for at in times) for begin in times)


class Over(Exception):
    """The time of a test is over."""


class Skipping(ManualClock):
    """A clock on which every sleep is over at once; only one task may use it."""

    until = float("inf")

    @override
    async def sleep(self, seconds: float) -> None:
        self.jump(seconds)
        if self.monotonic() >= self.until:
            raise Over


@dataclass
class Scene:
    """A bridge that compares one platform, and what it found there."""

    clock: Skipping
    platform: Platform
    stores: Stores
    taken: list[str] = field(default_factory=list)

    async def run(self, seconds: float) -> None:
        """Let a bridge compare for so long, and end."""
        settings = SimpleNamespace(retention_events_days=None, retention_days=30)
        runtime: Any = SimpleNamespace(
            clock=self.clock,
            stores=self.stores,
            intake=SimpleNamespace(take=self._take),
            configuration=SimpleNamespace(settings=settings),
        )
        watch = Watch(runtime, self.platform)
        self.clock.until = self.clock.monotonic() + seconds
        with pytest.raises(Over):
            await watch.run()
        await watch.keep()

    async def _take(self, delivery: Delivery) -> None:
        self.taken.append(delivery.body.decode())
        await self.stores.deliveries.add(delivery)

    def say(self, channel: str, ago: float = 0.0) -> str:
        """Say something on the platform that does not arrive."""
        at = self.clock.now() - ago
        self.platform.said.append((channel, at))
        return f"{channel} {at}"


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    clock = Skipping()
    with open_stores(tmp_path, clock) as (_, stores):
        yield Scene(clock, Platform(clock), stores)


async def test_the_first_run_does_not_look_back_and_the_next_one_goes_on_there(
    scene: Scene,
) -> None:
    scene.platform.used = {"general": START}
    scene.say("general", ago=10)
    await scene.run(2 * MINUTE)
    nothing = list(scene.taken)
    missed = scene.say("general")
    scene.clock.jump(DAY)
    await scene.run(2 * MINUTE)

    assert nothing == []
    assert scene.taken == [missed]
    [gap] = await scene.stores.gaps.since(0)
    assert (gap.adapter, gap.cause) == ("web:claude", "bridge")
    assert gap.ended - gap.began == pytest.approx(DAY, abs=3 * MINUTE)


async def test_after_an_upgrade_the_last_delivery_is_where_it_begins(scene: Scene) -> None:
    scene.platform.used = {"general": 0.0}
    known = Delivery("web:claude", "known", None, {}, b"", START - DAY)
    await scene.stores.deliveries.add(known)
    scene.say("general", ago=2 * DAY)
    missed = scene.say("general", ago=HOUR)
    await scene.run(MINUTE)

    assert scene.taken == [missed]


async def test_what_is_older_than_events_are_kept_is_left_alone(scene: Scene) -> None:
    scene.platform.used = {"general": 0.0}
    await scene.run(MINUTE)
    scene.say("general")
    scene.clock.jump(31 * DAY)
    missed = scene.say("general", ago=29 * DAY)
    await scene.run(MINUTE)

    assert scene.taken == [missed]


async def test_what_was_decided_or_just_sent_is_not_missed(scene: Scene) -> None:
    scene.platform.used = {"general": START}
    await scene.run(MINUTE)
    decided = scene.say("general")
    inbound = scene.platform.parse(Delivery("", "", None, {}, decided.encode(), 0))
    await scene.stores.decisions.accept(Decision(1, inbound, "done", "mentioned"))
    scene.clock.jump(MINUTE)
    fresh = scene.say("general", ago=-GRACE_SECONDS)  # sent while the channel is being read
    await scene.run(GRACE_SECONDS + 1)
    at_once = list(scene.taken)
    await scene.run(2 * MINUTE)

    assert at_once == []
    assert scene.taken == [fresh]


async def test_a_thousand_channels_are_compared_within_the_budget_and_the_bound(
    scene: Scene,
) -> None:
    idle, used = [f"idle {n}" for n in range(990)], [f"used {n}" for n in range(10)]
    scene.platform.used = dict.fromkeys(idle, 0.0) | dict.fromkeys(used, START + HOUR)
    await scene.run(MINUTE)
    scene.platform.read.clear()
    missed = {scene.say(channel) for channel in [*used, *idle]}
    began = scene.clock.monotonic()
    await scene.run(2 * MINUTE)
    soon = set(scene.taken)
    await scene.run(33 * MINUTE)

    assert soon >= {each for each in missed if each.startswith("used")}
    assert set(scene.taken) == missed
    assert len(scene.taken) == len(missed)
    assert scene.platform.busiest_minute() <= BUDGET
    assert scene.clock.monotonic() - began <= 36 * MINUTE


async def test_more_channels_in_use_than_the_budget_leave_a_third_to_the_others(
    scene: Scene,
) -> None:
    scene.platform.used = {f"used {n}": START + DAY for n in range(100)} | {"idle": 0.0}
    await scene.run(12 * MINUTE)

    reads = Counter(name for _, name, _ in scene.platform.read)
    assert reads["idle"] >= 2
    assert min(reads.values()) >= 2
    assert scene.platform.busiest_minute() <= BUDGET


async def test_an_idle_bridge_reads_each_channel_every_five_minutes(scene: Scene) -> None:
    scene.platform.used = {"one": 0.0, "two": 0.0}
    await scene.run(HOUR)

    assert len(scene.platform.read) <= 2 * (HOUR / PAUSE_SECONDS + 1)


async def test_a_gap_is_noted_and_everything_is_read_soon(scene: Scene) -> None:
    scene.platform.used = {"general": 0.0}
    await scene.run(MINUTE)
    scene.platform.read.clear()
    scene.platform.gaps.append(Gap(START, START + 30, "socket"))
    await scene.run(MINUTE)

    # Once at the start, and once more for what was lost meanwhile.
    assert len(scene.platform.read) == 2
    assert await scene.stores.gaps.cause("web:claude", START + 10) == "socket"
    assert await scene.stores.gaps.cause("web:claude", START + 40) is None


async def test_a_channel_that_cannot_be_read_is_read_from_the_same_time_again(
    scene: Scene,
) -> None:
    scene.platform.used = {"general": START}
    scene.platform.fault = PostDelayed("busy")
    await scene.run(MINUTE)
    missed = scene.say("general")
    await scene.run(HOUR)
    scene.platform.fault = None
    await scene.run(LIST_SECONDS)

    assert scene.taken == [missed]
