"""The tokens of an agent against the simulated Linear: installed, renewed, rotated, revoked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from pydantic import SecretStr

from app.config.process import Sealer
from app.errors import PostDelayed, ServiceRefused
from app.services.linear.api import LinearApi
from app.services.linear.auth import Grants, LinearGrant, LinearTokens
from app.services.linear.settings import LinearCredentials
from app.store.stores import Stores
from app.vault import Vault
from sim.linear import App, Linear
from sim.linear.oauth import GRACE_SECONDS, GRANTED_SECONDS
from tests.support.clock import ManualClock
from tests.support.memory import open_stores

pytestmark = pytest.mark.anyio

BACK = "https://bridge.example.com/install/linear/demo/callback"
INSTALL = "https://bridge.example.com/install/linear/demo"


@dataclass
class Run:
    """One run of the bridge, as far as tokens go."""

    linear: Linear
    tokens: LinearTokens
    api: LinearApi
    grants: Grants
    app: App
    vault: Vault

    async def install(self) -> None:
        """Consent, and come back with the code."""
        address = self.tokens.consent_address(BACK, "any state")
        assert address is not None
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        back = parse_qs(urlsplit(self.linear.oauth.consent(asked)).query)
        await self.api.install(back["code"][0], BACK)

    async def works(self) -> str:
        """Call Linear; says which token it took."""
        await self.api.call("viewer")
        grant = self.grants.read(self.app.client_id)
        return "" if grant is None else grant.access

    def asked(self) -> list[str]:
        """List what tokens were asked for with."""
        calls = (call for call in self.linear.calls if call.field == "token")
        return [call.variables["grant"] for call in calls]


@dataclass
class Bench:
    """One application on one Linear, and as many runs of a bridge as a test wants."""

    linear: Linear
    clock: ManualClock
    stores: Stores
    app: App

    @asynccontextmanager
    async def run(self, *, key: str = "k" * 40, client: str = "") -> AsyncIterator[Run]:
        credentials = LinearCredentials(
            webhook_secret=SecretStr(self.app.webhook_secret),
            client_id=client or self.app.client_id,
            client_secret=SecretStr(self.app.client_secret),
        )
        grants = Grants("linear:demo", self.stores.sealed, Sealer(SecretStr(key)))
        vault = Vault()
        tokens = LinearTokens(
            "linear:demo",
            credentials,
            self.linear.url,
            self.clock,
            vault,
            grants=grants,
            install_url=INSTALL,
        )
        api = LinearApi(self.linear.url, tokens, self.clock)
        try:
            yield Run(self.linear, tokens, api, grants, self.app, vault)
        finally:
            await api.close()


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    clock = ManualClock()
    with Linear(clock.now) as linear, open_stores(tmp_path, clock) as (_, stores):
        app = linear.agent("demo")
        app.callbacks.append(BACK)
        yield Bench(linear, clock, stores, app)


async def test_an_installation_is_kept_sealed_and_taken_up_by_the_next_run(bench: Bench) -> None:
    async with bench.run() as run:
        await run.install()
        token = await run.works()
        sealed = bench.stores.sealed.kept("grant:linear:demo") or ""
        said = run.vault.redact(f"the token is {token}")

    async with bench.run() as run:
        again = await run.works()

    assert again == token
    assert run.asked() == ["authorization_code"]
    assert token not in sealed
    assert token not in said


async def test_a_token_is_renewed_in_time_and_the_refresh_token_changes(bench: Bench) -> None:
    async with bench.run() as run:
        await run.install()
        first = run.grants.read(bench.app.client_id)
        await bench.clock.advance(GRANTED_SECONDS - 600)
        await run.works()
        second = run.grants.read(bench.app.client_id)

    assert run.asked() == ["authorization_code", "refresh_token"]
    assert first is not None
    assert second is not None
    assert first.refresh != second.refresh
    assert bench.app.tokens[second.access] > bench.clock.now()


async def test_a_token_that_linear_takes_no_more_is_renewed_once(bench: Bench) -> None:
    async with bench.run() as run:
        await run.install()
        bench.app.tokens.clear()
        await run.works()

    assert run.asked() == ["authorization_code", "refresh_token"]


async def test_a_file_is_fetched_with_a_renewed_token(bench: Bench) -> None:
    upload = bench.linear.upload("door.png", b"a door")
    path = upload.rpartition("linear.app/")[2].removesuffix(")")
    async with bench.run() as run:
        await run.install()
        bench.app.tokens.clear()
        chunks = [chunk async for chunk in run.api.download(path)]

    assert b"".join(chunks) == b"a door"
    assert run.asked() == ["authorization_code", "refresh_token"]


async def test_all_who_find_a_token_ended_wait_for_one_renewal(bench: Bench) -> None:
    async with bench.run() as run:
        await run.install()
        bench.app.tokens.clear()
        bench.linear.held = {"token"}
        callers = [asyncio.ensure_future(run.works()) for _ in range(5)]
        await asyncio.to_thread(bench.linear.wait, lambda: bool(bench.linear.waiting))
        bench.linear.release("token")
        seen = await asyncio.gather(*callers)

    assert run.asked() == ["authorization_code", "refresh_token"]
    assert len(set(seen)) == 1


async def test_whoever_gives_up_waiting_does_not_lose_what_linear_gives(bench: Bench) -> None:
    async with bench.run() as run:
        await run.install()
        before = await run.works()
        bench.app.tokens.clear()
        bench.linear.held = {"token"}
        caller = asyncio.ensure_future(run.works())
        await asyncio.to_thread(bench.linear.wait, lambda: bool(bench.linear.waiting))
        caller.cancel()
        await asyncio.wait({caller})
        bench.linear.release("token")
        after = await run.works()

    assert caller.cancelled()
    assert after != before
    assert run.asked() == ["authorization_code", "refresh_token"]


async def test_an_answer_that_got_lost_is_asked_for_again_within_half_an_hour(
    bench: Bench,
) -> None:
    async with bench.run() as run:
        await run.install()
        bench.app.tokens.clear()
        bench.linear.lose_tokens = 1
        with pytest.raises(PostDelayed):
            await run.works()

    await bench.clock.advance(GRACE_SECONDS - 1)
    async with bench.run() as run:
        await run.works()
        await bench.clock.advance(GRANTED_SECONDS)
        await run.works()

    assert run.asked() == ["authorization_code"] + 3 * ["refresh_token"]


async def test_an_answer_that_got_lost_for_longer_takes_a_new_installation(bench: Bench) -> None:
    async with bench.run() as run:
        await run.install()
        bench.app.tokens.clear()
        bench.linear.lose_tokens = 1
        with pytest.raises(PostDelayed):
            await run.works()

    await bench.clock.advance(GRACE_SECONDS + 1)
    async with bench.run() as run:
        with pytest.raises(ServiceRefused, match=INSTALL):
            await run.works()
        before = run.asked()
        with pytest.raises(ServiceRefused, match="revoked or replaced"):
            await run.works()
        assert run.asked() == before  # what ended is not tried again
        await run.install()
        await run.works()


async def test_a_revoked_installation_is_remembered_as_one(bench: Bench) -> None:
    async with bench.run() as run:
        await run.install()
        bench.linear.oauth.revoke(bench.app)
        with pytest.raises(ServiceRefused, match=INSTALL):
            await run.works()
        kept = run.grants.read(bench.app.client_id)

    assert kept == LinearGrant(bench.app.client_id, ended=kept.ended if kept else "")
    async with bench.run() as run:
        with pytest.raises(ServiceRefused, match=INSTALL):
            await run.works()


async def test_an_error_of_another_shape_is_a_refusal_like_any_other(bench: Bench) -> None:
    async def refuse(_address: str, _form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        return 400, {"error": {"code": "invalid_client"}}

    async with bench.run() as run:
        with pytest.raises(ServiceRefused, match="LINEAR_CLIENT_SECRET"):
            await run.tokens.current(refuse)


async def test_a_code_that_is_wrong_or_used_installs_nothing(bench: Bench) -> None:
    async with bench.run() as run:
        with pytest.raises(ServiceRefused, match=INSTALL):
            await run.api.install("no such code", BACK)

        assert run.grants.read(bench.app.client_id) is None


async def test_without_an_installation_tokens_are_minted_for_the_application(
    bench: Bench,
) -> None:
    async with bench.run() as run:
        await run.works()
        bench.app.credentials = False
        bench.app.tokens.clear()
        with pytest.raises(ServiceRefused, match=f"client credentials.*{INSTALL}"):
            await run.works()

    assert run.asked() == 2 * ["client_credentials"]


async def test_a_token_is_used_to_its_end_while_linear_renews_none(bench: Bench) -> None:
    async with bench.run() as run:
        await run.install()
        before = await run.works()
        await bench.clock.advance(GRANTED_SECONDS - 600)
        bench.linear.lose_tokens = 1
        during = await run.works()
        after = await run.works()

    assert during == before
    assert after != before


async def test_what_was_sealed_with_another_key_takes_a_new_installation(bench: Bench) -> None:
    async with bench.run() as run:
        await run.install()

    async with bench.run(key="another key" * 4) as run:
        with pytest.raises(ServiceRefused, match="BRIDGE_SECRET_KEY"):
            await run.works()
        await run.install()
        await run.works()


async def test_the_installation_of_another_application_is_not_used(bench: Bench) -> None:
    async with bench.run() as run:
        await run.install()

    async with bench.run(client="another-client") as run:
        with pytest.raises(ServiceRefused, match="LINEAR_CLIENT_ID"):
            await run.works()


async def test_a_new_installation_is_not_replaced_by_a_renewal_of_the_old_one(
    bench: Bench,
) -> None:
    async with bench.run() as run:
        await run.install()
        bench.app.tokens.clear()
        bench.linear.held = {"token"}
        caller = asyncio.ensure_future(run.works())
        await asyncio.to_thread(bench.linear.wait, lambda: bool(bench.linear.waiting))
        installing = asyncio.ensure_future(run.install())
        bench.linear.release("token")
        await asyncio.gather(caller, installing)
        await run.works()

    assert run.asked() == ["authorization_code", "refresh_token", "authorization_code"]
