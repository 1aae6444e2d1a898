"""Which repositories an App opens."""

from __future__ import annotations

import pytest

from app.errors import RepositoryError
from app.services.github.catalog import KEPT_SECONDS, Catalog
from app.services.github.forge import GithubForge
from app.sim.github.answers import Reply
from tests.support.clock import ManualClock
from tests.support.github_desk import Desk

pytestmark = pytest.mark.anyio


async def linked(*_: object) -> bool:
    return True


def catalog(
    desk: Desk, clock: ManualClock | None = None, installation: str | None = None
) -> Catalog:
    return Catalog(desk.apis["claude"], clock or ManualClock(), installation=installation)


async def test_all_installations_are_listed_and_what_changed_last_comes_first(desk: Desk) -> None:
    elsewhere = desk.github.repository("other/thing")
    archived = desk.github.repository("other/old")
    archived.archived = True
    desk.github.install(desk.apps["claude"], elsewhere, archived)
    suspended = desk.github.install(desk.apps["claude"], desk.github.repository("third/one"))
    suspended.suspended = True
    desk.repository.pushed = elsewhere.pushed + 1

    assert await catalog(desk).names() == ("acme/widgets", "other/thing")
    assert all(value.startswith("ghs_") for value in desk.secrets)
    assert desk.secrets != []


async def test_a_long_list_is_read_to_its_end(desk: Desk) -> None:
    more = [desk.github.repository(f"acme/r{number}") for number in range(104)]
    installation = desk.github.installations[0]
    installation.repositories |= {each.id for each in more}

    assert len(await catalog(desk).names()) == 105


async def test_one_installation_can_be_all_there_is(desk: Desk) -> None:
    made = desk.github.install(desk.apps["claude"], desk.github.repository("other/thing"))

    assert await catalog(desk, installation=str(made.id)).names() == ("other/thing",)
    assert await catalog(desk, installation="1").names() == ()


async def test_an_answer_is_kept_for_a_while(desk: Desk) -> None:
    clock = ManualClock()
    mine = catalog(desk, clock)
    await mine.names()
    desk.github.install(desk.apps["claude"], desk.github.repository("other/thing"))

    assert await mine.names() == ("acme/widgets",)
    await clock.advance(KEPT_SECONDS)
    assert set(await mine.names()) == {"acme/widgets", "other/thing"}


@pytest.mark.parametrize("reply", [Reply(500, {"message": "oops"}), None])
async def test_what_github_does_not_say_is_told_with_a_remedy(
    desk: Desk, reply: Reply | None
) -> None:
    forge = GithubForge(
        {}, {"claude": catalog(desk)}, desk.clock, git_url="https://git.example", link=linked
    )
    desk.github.fail("GET", "/installation/repositories", reply)

    with pytest.raises(RepositoryError, match="`repo OWNER/NAME` or `repo none`"):
        await forge.repositories("claude")
    assert await forge.repositories("claude") == ("acme/widgets",)
    assert await forge.repositories("somebody-else") == ()
