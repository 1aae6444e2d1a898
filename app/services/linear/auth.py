"""Holds one agent's token: set by hand, minted for its OAuth application, or granted to it.

A token is opened only where it is sent, and everything that leaves is checked against it. Linear
issues a new refresh token with every renewal. What it gives in exchange for something that works
only once is committed, sealed, before it is used: an agent that loses it must be installed again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import asdict, dataclass, replace
from typing import Any, Final
from urllib.parse import urlencode, urlsplit, urlunsplit

import orjson
from pydantic import BaseModel, ConfigDict, SecretStr, ValidationError, field_validator

from app.clock import Clock
from app.config.process import Sealer
from app.errors import PostDelayed, ServiceRefused
from app.retry import persist
from app.services.linear import wording
from app.services.linear.settings import LinearCredentials
from app.services.linear.wording import UNREADABLE
from app.store.sealed import SealedStore
from app.tasks import Tasks
from app.vault import Vault


@dataclass(frozen=True, slots=True)
class LinearGrant:
    """One installation: its application and its current tokens."""

    client: str
    """The OAuth application that was installed."""
    access: str = ""
    refresh: str = ""
    until: float = 0.0
    """When the access token ends, in seconds since 1970."""
    scope: str = ""
    ended: str = ""
    """Why it is no longer valid; empty while it is."""


class Grants:
    """Stores one agent's grant."""

    def __init__(self, adapter: str, store: SealedStore, sealer: Sealer) -> None:
        self._name = f"grant:{adapter}"
        self._store = store
        self._sealer = sealer

    def read(self, client: str) -> LinearGrant | None:
        """Read the grant of an application; None if it was never installed."""
        sealed = self._store.kept(self._name)
        if sealed is None:
            return None
        opened = self._sealer.open(self._name, sealed)
        if opened is None:
            return LinearGrant(client, ended=UNREADABLE)
        grant = LinearGrant(**orjson.loads(opened))
        return grant if grant.client == client else None

    async def keep(self, grant: LinearGrant, clock: Clock) -> None:
        """Replace the stored grant, however long the store is unavailable."""
        sealed = self._sealer.seal(self._name, orjson.dumps(asdict(grant)).decode())
        await persist(clock, self._store.keep, self._name, sealed)


SCOPES: Final = ("read", "write", "app:assignable", "app:mentionable")
"""The scopes an agent needs; asking for another set would revoke its tokens."""
EARLY_SECONDS: Final = 3600.0
"""How long before it expires a token is renewed: longer than any call, much less than its life."""
GRACE_SECONDS: Final = 2.0
"""Time a renewal gets at shutdown. One that is cut off is repeated at the next start: for half an
hour Linear answers a used refresh token as it did the first time."""

Exchange = Callable[[str, dict[str, str]], Awaitable[tuple[int, dict[str, Any]]]]
"""Sends a form to an address; returns status and answer."""


class _Given(BaseModel):
    """What Linear gives in exchange for credentials, a code or a refresh token."""

    model_config = ConfigDict(extra="ignore")

    access_token: SecretStr
    expires_in: float
    refresh_token: SecretStr | None = None
    scope: str = ""

    @field_validator("scope", mode="before")
    @classmethod
    def _join_list(cls, scope: object) -> object:
        """Join a list: old applications get one."""
        return ",".join(map(str, scope)) if isinstance(scope, list) else scope


@dataclass(frozen=True, slots=True)
class _Held:
    token: SecretStr
    until: float


class _GrantEnded(ServiceRefused):
    """The code or refresh token is no longer valid."""


class LinearTokens:
    """One agent's token, from any source."""

    def __init__(
        self,
        name: str,
        credentials: LinearCredentials,
        api_url: str,
        clock: Clock,
        vault: Vault,
        *,
        grants: Grants | None = None,
        install_url: str = "",
    ) -> None:
        """Hold the token of an adapter, whose application is installed at `install_url`."""
        self._name = name
        self._credentials = credentials
        self._api_url = api_url
        self._address = token_address(api_url)
        self._clock = clock
        self._vault = vault
        self._grants = grants
        self._install_url = install_url
        self._held: _Held | None = None
        self._renewing: asyncio.Task[_Held | ServiceRefused | PostDelayed] | None = None
        self._tasks = Tasks(f"tokens of {name}")
        self.lacking: tuple[str, ...] = ()
        """The scopes that the token lacks, as far as Linear says."""

    @property
    def installable(self) -> bool:
        """Whether an admin can install the application."""
        return self._grants is not None and self._credentials.client_secret is not None

    async def current(self, exchange: Exchange) -> SecretStr:
        """Return the token to use now.

        Raises:
            ServiceRefused: there is none.
            PostDelayed: not now.
        """
        if self._credentials.client_secret is None:
            assert self._credentials.access_token is not None, "checked when settings were read"
            return self._credentials.access_token
        held = self._held
        if held is None and (grant := self._grant()) is not None:
            held = self._hold(grant)
        if held is None or self._clock.now() > held.until - EARLY_SECONDS:
            try:
                held = await self._renew_once(exchange)
            except PostDelayed:
                if held is None or self._clock.now() >= held.until:
                    raise
        return held.token

    async def renew(self, old: SecretStr, exchange: Exchange) -> SecretStr:
        """Replace a token that Linear no longer accepts.

        Raises:
            ServiceRefused: there is none.
            PostDelayed: not now.
        """
        if self._credentials.client_secret is None:
            raise self.refused("Linear rejected the token")
        held = self._held
        if held is None or held.token == old:
            held = await self._renew_once(exchange)
        return held.token

    def consent_address(self, back: str, state: str) -> str | None:
        """Return the address where an admin consents to the installation; None if not needed."""
        if not self.installable:
            return None
        asked = {
            "client_id": self._credentials.client_id or "",
            "redirect_uri": back,
            "response_type": "code",
            "scope": ",".join(SCOPES),
            "actor": "app",
            "prompt": "consent",
            "state": state,
        }
        return f"{authorize_address(self._api_url)}?{urlencode(asked)}"

    async def install(self, code: str, back: str, exchange: Exchange) -> None:
        """Exchange the code that an admin brings back for a grant, and store it.

        Raises:
            ServiceRefused: Linear issues none for it.
            PostDelayed: not now.
        """
        while self._renewing is not None:  # its result must not replace the new grant
            await asyncio.wait({self._renewing})
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": back}
        await self._run_to_end(self._exchange_grant(exchange, form))

    def refused(self, cause: str) -> ServiceRefused:
        """Return an error that says what is wrong with the credentials, and what to do."""
        remedy = wording.CREATE_ACCESS
        if self._credentials.client_secret is not None:
            remedy = wording.check_client(self._install_url)
        return ServiceRefused(self._name, cause, remedy)

    async def close(self) -> None:
        """Let a running renewal finish."""
        await self._tasks.close(grace=GRACE_SECONDS)

    def _grant(self) -> LinearGrant | None:
        """Read the grant, if the application was installed.

        Raises:
            ServiceRefused: it is no longer valid.
        """
        client = self._credentials.client_id
        grant = self._grants.read(client) if self._grants is not None and client else None
        if grant is not None and grant.ended:
            raise self._grant_ended(grant.ended)
        return grant

    def _grant_ended(self, cause: str) -> _GrantEnded:
        remedy = wording.INSTALL_AGAIN.format(address=self._install_url)
        return _GrantEnded(self._name, cause, remedy)

    async def _renew_once(self, exchange: Exchange) -> _Held:
        """Renew the token, once for all callers at the same time."""
        if self._renewing is None:
            return await self._run_to_end(self._renew(exchange))
        return _unwrap(await asyncio.shield(self._renewing))

    async def _run_to_end(self, renewal: Coroutine[Any, Any, _Held]) -> _Held:
        """Run a renewal to its end, even if its caller is cancelled."""

        async def run() -> _Held | ServiceRefused | PostDelayed:
            try:
                return await renewal
            except (ServiceRefused, PostDelayed) as error:
                return error  # for all callers that wait
            finally:
                self._renewing = None

        self._renewing = self._tasks.start(run(), name="renewal")
        return _unwrap(await asyncio.shield(self._renewing))

    async def _renew(self, exchange: Exchange) -> _Held:
        grant = self._grant()
        if grant is None:
            form = {"grant_type": "client_credentials", "scope": ",".join(SCOPES)}
            return self._hold(self._to_grant(await self._ask(exchange, form)))
        try:
            form = {"grant_type": "refresh_token", "refresh_token": grant.refresh}
            return await self._exchange_grant(exchange, form)
        except _GrantEnded:
            assert self._grants is not None, "there is a grant"
            self._held = None
            await self._grants.keep(LinearGrant(grant.client, ended=wording.REVOKED), self._clock)
            raise self._grant_ended(wording.REVOKED) from None

    async def _exchange_grant(self, exchange: Exchange, form: dict[str, str]) -> _Held:
        """Exchange a code or refresh token for a grant; it is committed before it is used."""
        assert self._grants is not None, "only an installable application gets here"
        grant = self._to_grant(await self._ask(exchange, form))
        if not grant.refresh:
            grant = replace(grant, refresh=form.get("refresh_token", ""))
        await self._grants.keep(grant, self._clock)
        return self._hold(grant)

    async def _ask(self, exchange: Exchange, form: dict[str, str]) -> _Given:
        """Ask for tokens.

        Raises:
            _GrantEnded: the code or refresh token is no longer valid.
            ServiceRefused: Linear issues none.
            PostDelayed: not now.
        """
        given = self._credentials
        assert given.client_id is not None, "checked when the settings were read"
        assert given.client_secret is not None, "checked by the caller"
        own = {
            "client_id": given.client_id,
            "client_secret": given.client_secret.get_secret_value(),
        }
        status, answer = await exchange(self._address, form | own)
        if status >= 500 or status == 429:
            raise PostDelayed(f"Linear cannot issue a token now (status {status})")
        try:
            return _Given.model_validate(answer)
        except ValidationError:
            cause = wording.NO_TOKEN.format(status=status)
            if answer.get("error") == "invalid_grant":
                raise self._grant_ended(cause) from None
            raise self.refused(cause) from None

    def _to_grant(self, given: _Given) -> LinearGrant:
        """Convert Linear's answer to a grant."""
        refresh = given.refresh_token
        return LinearGrant(
            client=self._credentials.client_id or "",
            access=given.access_token.get_secret_value(),
            refresh="" if refresh is None else refresh.get_secret_value(),
            until=self._clock.now() + given.expires_in,
            scope=given.scope,
        )

    def _hold(self, grant: LinearGrant) -> _Held:
        self._vault.register(*filter(None, (grant.access, grant.refresh)))
        granted = set(grant.scope.replace(",", " ").split())
        self.lacking = tuple(scope for scope in SCOPES if granted and scope not in granted)
        self._held = _Held(SecretStr(grant.access), grant.until)
        return self._held


def _unwrap(result: _Held | ServiceRefused | PostDelayed) -> _Held:
    if isinstance(result, _Held):
        return result
    raise result


def token_address(api_url: str) -> str:
    """Return the token endpoint, on the host of the GraphQL API."""
    parts = urlsplit(api_url)
    return urlunsplit((parts.scheme, parts.netloc, "/oauth/token", "", ""))


def authorize_address(api_url: str) -> str:
    """Return the consent page, on Linear's site, not on its API's host."""
    parts = urlsplit(api_url)
    return urlunsplit((parts.scheme, parts.netloc.removeprefix("api."), "/oauth/authorize", "", ""))
