"""Holds coroutines while a server is away: where they wait anyway, or where they read from it.

What a task does between two waits is done at once for all other tasks that are held: only one can
find out by reading that the server is away, the others wait before they go on, and it goes first.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import Any, TypeVar

from greenlet import getcurrent, greenlet  # type: ignore[import-untyped] # it has no types
from typing_extensions import override

from app.retry import Outage

T = TypeVar("T")

_ASIDE = object()
"""What a coroutine waits for that reads from a server that is away."""


class Holding(Outage):
    """An outage that holds coroutines."""

    @override
    async def hold(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine, which goes on only while the server is there."""
        result: T = await _Held(work, self)
        return result


def step_aside() -> bool:
    """Hold the coroutine that calls this, until the server is there; False if it is not held."""
    current = getcurrent()
    if not isinstance(current, _Stack):
        return False
    if (error := current.home.switch(_ASIDE)) is not None:
        raise error
    return True


class _Stack(greenlet):  # type: ignore[misc] # it has no types
    """The stack of a coroutine, which can be left at any depth."""

    home: greenlet
    """The stack of the event loop."""


class _Held:
    """Passes on what a coroutine waits for, and each time waits for the server as well."""

    def __init__(self, work: Coroutine[Any, Any, Any], outage: Outage) -> None:
        self._work = work
        self._outage = outage

    def __await__(self) -> Generator[Any, Any, Any]:
        stack = _Stack(self._run)
        stack.home = getcurrent()
        stack.gr_context = stack.home.gr_context
        error = yield from self._wait()
        while True:
            awaited = stack.switch(error)
            if stack.dead:
                return awaited
            if awaited is not _ASIDE:
                error = yield from _pass_on(awaited)
            if error is None or awaited is _ASIDE:
                error = yield from self._wait()

    def _run(self, error: BaseException | None) -> Any:
        """Run the coroutine on its stack."""
        home = getcurrent().parent
        assert home is not None
        while True:
            try:
                awaited = self._work.send(None) if error is None else self._work.throw(error)
            except StopIteration as end:
                return end.value
            error = home.switch(awaited)

    def _wait(self) -> Generator[Any, Any, BaseException | None]:
        """Wait until the server is there; return what the task was told instead."""
        if not self._outage.is_on:
            return None
        try:
            yield from self._outage.wait().__await__()
        except BaseException as error:  # noqa: BLE001 - it is for the coroutine
            return error
        return None


def _pass_on(awaited: Any) -> Generator[Any, Any, BaseException | None]:
    try:
        yield awaited
    except BaseException as error:  # noqa: BLE001 - it is for the coroutine
        return error
    return None
