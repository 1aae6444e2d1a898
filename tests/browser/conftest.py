"""The browser of the stories, and the visits that people pay to a bridge with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.support.chromium import MISSING, chromium, open_browser
from tests.support.platform import Platform
from tests.support.served import Forked, Site
from tests.support.window import Visit

Visiting = Callable[..., Visit]
Agents = dict[str, dict[str, Any]]


# One browser for all stories of a worker. Its scope ends where the stories end: while it is there,
# its thread has a running event loop, which other tests would trip over.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    if chromium() is None:
        pytest.skip(MISSING)
    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def bridge(
    browser: Browser, agents: Agents, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """Start a bridge for the stories of a module, with the agents that it names."""
    with Platform() as platform, Forked(tmp_path_factory.mktemp("bridge"), platform, agents) as it:
        yield it


@pytest.fixture(scope="module")
def cookies(browser: Browser, bridge: Site) -> Any:
    """Open a log-in link and keep the cookies."""
    with closing(Visit(browser, bridge.url)) as visit:
        visit.sign_in(bridge.new_link())
        return visit.context.storage_state()


@pytest.fixture
def visit(browser: Browser, bridge: Site, cookies: Any) -> Iterator[Visiting]:
    """Begin visits of somebody who is signed in; none of them may see an error."""
    with ExitStack() as stack:

        def begin(**more: Any) -> Visit:
            made = Visit(browser, bridge.url, **{"cookies": cookies, **more})
            stack.callback(made.close)
            return made

        yield begin
