"""Sends requests to GitHub's REST API, keeps its rate limits and translates its errors.

When no answer came, the call may have succeeded: such errors are raised unchanged, so that callers
look for the result before they repeat the call. Only a clear refusal or delay becomes a PostError.

GitHub limits the content that is created: 80 requests a minute and 500 an hour. Progress leaves
room for results, so that an answer never waits behind a plan update.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, TypeVar

import httpx
from gidgethub import BadRequest, GitHubException, RateLimitExceeded
from gidgethub.httpx import GitHubAPI
from gidgethub.sansio import accept_format

from app.clock import Clock
from app.errors import PostDelayed, PostRejected
from app.retry import Retries
from app.services.github import wording

REQUESTER = "agent-bridge"
CALL_SECONDS = 15.0
"""How long one call may take: GitHub itself gives up after ten."""
PAGE = 100
"""Things per page, the most that GitHub gives."""
MOST_PAGES = 30
"""Pages of a list that is read whole: GitHub shows no more than 3,000 files of a pull request."""
LIMITED_SECONDS = 60.0
"""How long to wait after a rate limit error that does not say how long."""
MINUTE_SECONDS = 60.0
HOUR_SECONDS = 3600.0
A_MINUTE = 75
"""Five under GitHub's limit: its minute is not ours."""
AN_HOUR = 480
"""Twenty under GitHub's limit, for the same reason."""
PROGRESS_SHARE = 0.6
"""How much of that progress may use."""

PLAIN = accept_format()
"""Asks for GitHub's default format."""
Method = Literal["post", "patch", "delete"]


class Gone(PostRejected):
    """GitHub has no such thing, or does not show it to us."""


class Unprocessable(PostRejected):
    """GitHub understands the call, and does not carry it out."""


class Unauthorized(PostDelayed):
    """GitHub rejects the token or the App's JWT."""


class Transport:
    """The connection to GitHub; each call brings its own JWT or token."""

    def __init__(self, clock: Clock, api_url: str) -> None:
        self._clock = clock
        self.client = httpx.AsyncClient(
            timeout=CALL_SECONDS,
            follow_redirects=True,
            # Certificates take 0.1 s to load, which plain HTTP on loopback need not pay.
            verify=api_url.startswith("https:"),
            trust_env=api_url.startswith("https:"),
        )
        self._github = GitHubAPI(
            self.client,  # type: ignore[arg-type] # it names httpx2's client, and calls `request` alone
            REQUESTER,
            base_url=api_url,
        )
        # On Enterprise Server it is next to the REST API, elsewhere below it.
        self._graphql = f"{api_url.removesuffix('/v3')}/graphql"

    async def get(
        self,
        path: str,
        variables: Mapping[str, str] | None = None,
        *,
        jwt: str | None = None,
        token: str | None = None,
        accept: str = PLAIN,
    ) -> Any:
        """Read something."""
        with self._translate_refusals(path):
            return await self._github.getitem(
                path, dict(variables or {}), accept=accept, jwt=jwt, oauth_token=token
            )

    async def send(
        self,
        method: Method,
        path: str,
        data: Any,
        *,
        jwt: str | None = None,
        token: str | None = None,
    ) -> Any:
        """Create or change something."""
        github = self._github
        with self._translate_refusals(path):
            match method:
                case "post":
                    return await github.post(path, data=data, jwt=jwt, oauth_token=token)
                case "patch":
                    return await github.patch(path, data=data, jwt=jwt, oauth_token=token)
                case "delete":
                    return await github.delete(path, jwt=jwt, oauth_token=token)

    async def query(self, document: str, variables: Mapping[str, object], *, token: str) -> Any:
        """Run a GraphQL document; returns its data."""
        asked = {"query": document, "variables": dict(variables)}
        answer = await self.send("post", self._graphql, asked, token=token)
        if not (errors := answer.get("errors")):
            return answer["data"]
        kinds = {each.get("type", "") for each in errors}
        what = wording.REFUSED_QUERY.format(message=errors[0].get("message", ""))
        if "RATE_LIMITED" in kinds:
            raise PostDelayed(what, retry_after=LIMITED_SECONDS)
        raise Gone(what) if "NOT_FOUND" in kinds else PostRejected(what)

    async def iterate(self, path: str, *, jwt: str) -> AsyncGenerator[dict[str, Any], None]:
        """Read a list, page by page."""
        with self._translate_refusals(path):
            async for item in self._github.getiter(path, jwt=jwt, iterable_key=None):
                yield item

    @contextmanager
    def _translate_refusals(self, path: str) -> Iterator[None]:
        try:
            yield
        except RateLimitExceeded as error:
            until = error.rate_limit.reset_datetime.timestamp() - self._clock.now()
            raise PostDelayed(wording.HOURLY_LIMIT, retry_after=max(1.0, until)) from error
        except BadRequest as error:
            raise _refusal(path, error) from error


class Pace:
    """What one installation wrote during the last hour."""

    def __init__(self) -> None:
        self._written: deque[float] = deque()
        self._not_before = 0.0

    def wait(self, now: float, *, progress: bool = False) -> float:
        """Tell how many seconds the next write must wait."""
        while self._written and self._written[0] <= now - HOUR_SECONDS:
            self._written.popleft()
        share = PROGRESS_SHARE if progress else 1.0
        return max(
            0.0,
            self._not_before - now,
            self._until_room(now, int(A_MINUTE * share), MINUTE_SECONDS),
            self._until_room(now, int(AN_HOUR * share), HOUR_SECONDS),
        )

    def wrote(self, now: float) -> None:
        """Count a write."""
        self._written.append(now)

    def rest(self, until: float) -> None:
        """Write nothing before a time: GitHub said so."""
        self._not_before = max(self._not_before, until)

    def _until_room(self, now: float, allowed: int, seconds: float) -> float:
        if len(self._written) < allowed:
            return 0.0
        return self._written[-allowed] + seconds - now


def _refusal(path: str, error: BadRequest) -> PostDelayed | PostRejected:
    what = wording.REFUSED.format(path=path.partition("?")[0], error=error)
    headers = error.headers or {}
    retry_after = headers.get("retry-after", "")
    match int(error.status_code):
        case 401:
            return Unauthorized(f"{what}. {wording.CHECK_KEY}")
        case 403 | 429 if retry_after.isdigit():
            return PostDelayed(what, retry_after=float(retry_after))
        case 429:
            return PostDelayed(what, retry_after=LIMITED_SECONDS)
        case 403 if "rate limit" in str(error).lower():
            return PostDelayed(what, retry_after=LIMITED_SECONDS)
        case 404 | 410:
            return Gone(what)
        case 422:
            return Unprocessable(what)
        case _:
            return PostRejected(what)


PAUSES = (1.0, 5.0, 15.0)
"""Seconds between attempts: a hiccup must not cost a turn."""
LONGEST_SECONDS = 60.0
"""The longest pause that GitHub may ask for; above it people are told that the call failed."""
BRIEF_PAUSES = (1.0, 3.0)
BRIEF_SECONDS = 5.0
"""The same while a whole conversation waits and a person may want to stop it."""

T = TypeVar("T")


async def retry_github(clock: Clock, call: Callable[[], Awaitable[T]], *, brief: bool = False) -> T:
    """Make a call that may be repeated.

    Raises:
        PostRejected: GitHub refuses it for good.
        PostDelayed: all attempts failed.
    """
    pauses, longest = (BRIEF_PAUSES, BRIEF_SECONDS) if brief else (PAUSES, LONGEST_SECONDS)
    retries = Retries(clock, pauses, longest=longest)
    while True:
        try:
            return await call()
        except PostDelayed as error:
            await retries.wait(error)
        except (GitHubException, httpx.HTTPError) as error:
            await retries.wait(PostDelayed(str(error) or type(error).__name__))
