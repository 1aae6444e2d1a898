"""Calls GitHub's REST API as one App: paced, narrowed to one repository, refusals put into words.

What may have been carried out although no answer came is raised as it is, so that it is looked for
before it is repeated; only a clear no or not now becomes a PostError.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import httpx
from gidgethub import BadRequest, RateLimitExceeded
from gidgethub.httpx import GitHubAPI

from app.core.ports import Clock
from app.errors import PostDelayed, PostRejected
from app.services.github.auth import CHECKING, LOGS, REPORTED, SHOWING, TALKING, AppAuth
from app.services.github.names import Name, Spot
from app.services.github.pace import Pace
from app.services.github.payloads import (
    Annotation,
    ChangedFile,
    CheckRun,
    Comment,
    Issue,
    Opened,
    Pull,
    Review,
    Status,
)
from app.services.github.review import Remark

logger = logging.getLogger(__name__)

REQUESTER = "agent-bridge"
CALL_SECONDS = 15.0
"""How long one call may take: GitHub itself gives up after ten."""
PAGE = 100
"""Things per page, the most that GitHub gives."""
PAGES = 3
"""Pages of a long conversation that are read: its end, where the talk is."""
MOST_PAGES = 30
"""Pages of a list that is read whole: GitHub shows no more than 3,000 files of a pull request."""
LOG_BYTES = 16 * 1024
"""What is kept of a log: its end, where errors stand."""
LOG_SECONDS = 30.0
"""What reading one may take: the end of a longer one is not worth the wait."""
LIMITED_SECONDS = 60.0
"""How long to wait after a refusal for being too fast that does not say how long."""

RENDERED = "application/vnd.github.full+json"
"""Asks for a text also as people see it, with addresses that give out what is in it."""

Method = Literal["post", "patch"]


class Gone(PostRejected):
    """GitHub knows no such thing, or not for us."""


class Unauthorized(PostDelayed):
    """GitHub does not take the token or the App's JWT."""


class GithubApi:
    """GitHub as one App sees it."""

    def __init__(self, auth: AppAuth, clock: Clock, *, api_url: str) -> None:
        self._auth = auth
        self._clock = clock
        self._api_url = api_url
        self._client = httpx.AsyncClient(
            timeout=CALL_SECONDS,
            follow_redirects=True,
            # Certificates take 0.1 s to load, which plain HTTP on loopback need not pay.
            verify=api_url.startswith("https:"),
            trust_env=api_url.startswith("https:"),
        )
        self._github = GitHubAPI(self._client, REQUESTER, base_url=api_url)
        self._paces: dict[int, Pace] = defaultdict(Pace)

    async def close(self) -> None:
        """Let go of the connections."""
        await self._client.aclose()

    # The App itself.

    async def app(self) -> dict[str, Any] | None:
        """Read what GitHub knows of the App; None if it knows none by its number."""
        found: dict[str, Any] | None = await self.as_app("/app")
        return found

    async def bot_id(self, login: str) -> int | None:
        """Find the number of the App's bot."""
        installed = await self._installations()
        token = await self._auth.listing(installed[0], self.as_app) if installed else None
        with self._told("/users"):
            user = await self._github.getitem("/users/{login}", {"login": login}, oauth_token=token)
        return int(user["id"])

    async def as_app(self, path: str, data: Any = None) -> Any:
        """Get a path as the App, or post something to it; None if there is no such thing."""
        try:
            with self._told(path):
                if data is None:
                    return await self._github.getitem(path, jwt=self._auth.jwt())
                return await self._github.post(path, data=data, jwt=self._auth.jwt())
        except Gone:
            return None

    async def deliveries(self) -> AsyncGenerator[dict[str, Any], None]:
        """List what GitHub tried to deliver, the newest first."""
        path = f"/app/hook/deliveries?per_page={PAGE}"
        with self._told(path):
            async for item in self._github.getiter(path, jwt=self._auth.jwt(), iterable_key=None):
                yield item

    async def opened(self, installation: str | None) -> list[Opened]:
        """List the repositories that the App can work in, in one installation or in all."""
        numbers = [int(installation)] if installation else await self._installations()
        return [each for number in numbers for each in await self._opened(number)]

    async def _installations(self) -> list[int]:
        found = await self.as_app(f"/app/installations?per_page={PAGE}") or []
        return [each["id"] for each in found if not each.get("suspended_at")]

    async def _opened(self, installation: int) -> list[Opened]:
        token = await self._auth.listing(installation, self.as_app)
        found: list[Opened] = []
        if token is None:
            return found
        for page in range(1, MOST_PAGES + 1):
            path = f"/installation/repositories?per_page={PAGE}&page={page}"
            with self._told(path):
                answer = await self._github.getitem(path, oauth_token=token)
            some = [Opened.model_validate(each) for each in answer["repositories"]]
            found += some
            if len(some) < PAGE:
                break
        return [each for each in found if not each.archived and not each.disabled]

    # One repository.

    async def token(self, repository: str, permissions: Mapping[str, str]) -> str:
        """Get a token for one repository."""
        return await self._auth.token(repository, permissions, self.as_app)

    def forget(self, repository: str) -> None:
        """Throw away what is kept for a repository: its name may be another one's."""
        self._auth.forget(repository)

    async def permission(self, repository: str, login: str) -> str:
        """Ask what somebody may do in a repository."""
        url = f"/repos/{repository}/collaborators/{{login}}/permission"
        try:
            found = await self._get(repository, url, {"login": login})
        except Gone:
            return "none"
        return str(found["permission"])

    @property
    def client(self) -> httpx.AsyncClient:
        """The line to GitHub, for what is not its API."""
        return self._client

    async def rendered(self, spot: Spot, name: Name) -> str:
        """Read something that was said as GitHub shows it to people."""
        below = {
            "comment": f"issues/comments/{name.id}",
            "review": f"pulls/{spot.number}/reviews/{name.id}",
            "review-comment": f"pulls/comments/{name.id}",
        }.get(name.kind, f"issues/{spot.number}")
        path = f"/repos/{spot.repository}/{below}"

        async def call(token: str) -> Any:
            return await self._github.getitem(path, accept=RENDERED, oauth_token=token)

        found = await self._with_token(spot.repository, path, call)
        return str(found.get("body_html") or "")

    async def issue(self, spot: Spot) -> Issue:
        """Read an issue or pull request."""
        path = f"/repos/{spot.repository}/issues/{spot.number}"
        return Issue.model_validate(await self._get(spot.repository, path))

    async def pull(self, spot: Spot) -> Pull:
        """Read a pull request."""
        path = f"/repos/{spot.repository}/pulls/{spot.number}"
        return Pull.model_validate(await self._get(spot.repository, path))

    async def comments(self, spot: Spot) -> list[Comment]:
        """Read the end of a conversation, oldest first."""
        count = (await self.issue(spot)).comments
        last = max(1, -(-count // PAGE))
        path = f"/repos/{spot.repository}/issues/{spot.number}/comments?per_page={PAGE}&page="
        found: list[Comment] = []
        for page in range(max(1, last - PAGES + 1), last + 1):
            found += _comments(await self._get(spot.repository, f"{path}{page}"))
        return found

    async def line_comments(self, spot: Spot) -> list[Comment]:
        """Read the latest comments on lines of a pull request, newest first."""
        path = f"/repos/{spot.repository}/pulls/{spot.number}/comments"
        query = f"?per_page={PAGE}&sort=created&direction=desc&page="
        found: list[Comment] = []
        for page in range(1, PAGES + 1):
            some = _comments(await self._get(spot.repository, f"{path}{query}{page}"))
            found += some
            if len(some) < PAGE:
                break
        return found

    async def review(self, spot: Spot, number: int) -> tuple[Review, list[Comment]]:
        """Read a review and its comments on lines."""
        path = f"/repos/{spot.repository}/pulls/{spot.number}/reviews/{number}"
        review = Review.model_validate(await self._get(spot.repository, path))
        comments = [
            each for each in await self.line_comments(spot) if each.pull_request_review_id == number
        ]
        return review, comments[::-1]

    async def reviews(self, spot: Spot) -> list[Review]:
        """Read the reviews of a pull request, oldest first."""
        path = f"/repos/{spot.repository}/pulls/{spot.number}/reviews"
        return [Review.model_validate(each) for each in await self._all(spot.repository, path)]

    async def patches(self, spot: Spot) -> dict[str, str]:
        """Read what a pull request changes, file by file; a large change is not shown."""
        path = f"/repos/{spot.repository}/pulls/{spot.number}/files"
        files = map(ChangedFile.model_validate, await self._all(spot.repository, path))
        return {file.filename: file.patch for file in files}

    async def add_review(
        self, spot: Spot, body: str, remarks: Sequence[Remark], commit: str
    ) -> Review:
        """Review a commit of a pull request, without a verdict: that is a person's."""
        path = f"/repos/{spot.repository}/pulls/{spot.number}/reviews"
        asked = {
            "commit_id": commit,
            "event": "COMMENT",
            "body": body,
            "comments": [_on_lines(each) for each in remarks],
        }
        return Review.model_validate(await self._write(spot, "post", path, asked))

    async def say(self, spot: Spot, body: str, *, under: int | None = None) -> Name:
        """Comment on an issue, or under a comment on a line of its diff."""
        if under is None:
            path = f"/repos/{spot.repository}/issues/{spot.number}/comments"
            return Name("comment", (await self._write(spot, "post", path, {"body": body}))["id"])
        path = f"/repos/{spot.repository}/pulls/{spot.number}/comments/{under}/replies"
        made = await self._write(spot, "post", path, {"body": body})
        return Name("review-comment", made["id"])

    async def edit(self, spot: Spot, name: Name, body: str, *, progress: bool = False) -> None:
        """Change one of our comments."""
        kind = "pulls" if name.kind == "review-comment" else "issues"
        path = f"/repos/{spot.repository}/{kind}/comments/{name.id}"
        await self._write(spot, "patch", path, {"body": body}, progress=progress)

    async def react(self, spot: Spot, name: Name, content: str) -> None:
        """Put a reaction on what somebody said, where GitHub can."""
        below = {
            "issue": f"issues/{spot.number}",
            "label": f"issues/{spot.number}",
            "comment": f"issues/comments/{name.id}",
            "review-comment": f"pulls/comments/{name.id}",
        }.get(name.kind)
        if below is not None:
            path = f"/repos/{spot.repository}/{below}/reactions"
            await self._write(spot, "post", path, {"content": content}, progress=True)

    async def find_pull(self, repository: str, head: str) -> Pull | None:
        """Find the open pull request of a branch."""
        owner = repository.partition("/")[0]
        path = f"/repos/{repository}/pulls?state=open{{&head}}"
        found = await self._get(repository, path, {"head": f"{owner}:{head}"})
        return Pull.model_validate(found[0]) if found else None

    async def open_pull(self, repository: str, asked: Mapping[str, str]) -> Pull:
        """Open a pull request."""
        path = f"/repos/{repository}/pulls"
        return Pull.model_validate(await self._write(Spot(repository, 0), "post", path, asked))

    async def change_pull(self, spot: Spot, asked: Mapping[str, str]) -> Pull:
        """Change what a pull request says."""
        path = f"/repos/{spot.repository}/pulls/{spot.number}"
        return Pull.model_validate(await self._write(spot, "patch", path, asked))

    async def check_runs(self, repository: str, commit: str) -> list[CheckRun]:
        """Read the latest checks of a commit."""
        path = f"/repos/{repository}/commits/{commit}/check-runs"
        found = await self._all(repository, path, "check_runs", may=CHECKING)
        return [CheckRun.model_validate(each) for each in found]

    async def statuses(self, repository: str, commit: str) -> list[Status]:
        """Read what services last said about a commit, each once."""
        path = f"/repos/{repository}/commits/{commit}/status"
        found = await self._all(repository, path, "statuses", may=REPORTED)
        return [Status.model_validate(each) for each in found]

    async def annotations(self, repository: str, run: int) -> list[Annotation]:
        """Read the first things that a check says about lines."""
        path = f"/repos/{repository}/check-runs/{run}/annotations"
        found = await self._get(repository, path, may=CHECKING)
        return [Annotation.model_validate(each) for each in found]

    async def end_of_log(self, repository: str, job: int) -> str:
        """Read the end of what a job of a workflow wrote; nothing if it cannot be read."""
        token = await self.token(repository, LOGS)
        address = f"{self._api_url}/repos/{repository}/actions/jobs/{job}/logs"
        headers = {"authorization": f"Bearer {token}", "user-agent": REQUESTER}
        tail = b""
        try:
            async with (
                asyncio.timeout(LOG_SECONDS),
                self._client.stream("GET", address, headers=headers) as answer,
            ):
                if answer.status_code != httpx.codes.OK:
                    return ""
                async for data in answer.aiter_bytes():
                    tail = (tail + data)[-LOG_BYTES:]
        except (TimeoutError, httpx.HTTPError) as error:
            logger.info("the log of job %d cannot be read: %s", job, error)
            return ""
        return tail.decode(errors="replace")

    async def begin_check(self, spot: Spot, asked: Mapping[str, object]) -> int:
        """Put a check of our own on a commit."""
        path = f"/repos/{spot.repository}/check-runs"
        made = await self._write(spot, "post", path, asked, progress=True, may=SHOWING)
        return int(made["id"])

    async def change_check(
        self, spot: Spot, run: int, asked: Mapping[str, object], *, progress: bool
    ) -> None:
        """Change a check of our own."""
        path = f"/repos/{spot.repository}/check-runs/{run}"
        await self._write(spot, "patch", path, asked, progress=progress, may=SHOWING)

    async def _all(
        self, repository: str, path: str, below: str = "", *, may: Mapping[str, str] = TALKING
    ) -> list[Any]:
        """Read a list to its end; `below` names it where the answer is more than the list."""
        found: list[Any] = []
        for page in range(1, MOST_PAGES + 1):
            answer = await self._get(repository, f"{path}?per_page={PAGE}&page={page}", may=may)
            some = answer[below] if below else answer
            found += some
            if len(some) < PAGE:
                break
        return found

    async def _get(
        self,
        repository: str,
        path: str,
        variables: Mapping[str, str] | None = None,
        *,
        may: Mapping[str, str] = TALKING,
    ) -> Any:
        async def call(token: str) -> Any:
            return await self._github.getitem(path, dict(variables or {}), oauth_token=token)

        return await self._with_token(repository, path, call, may)

    async def _write(
        self,
        spot: Spot,
        method: Method,
        path: str,
        data: Mapping[str, object],
        *,
        progress: bool = False,
        may: Mapping[str, str] = TALKING,
    ) -> Any:
        """Make or change content, if the pace of the installation allows it."""
        number = await self._auth.installation(spot.repository, self.as_app)
        pace = self._paces[number]
        wait = pace.wait(self._clock.monotonic(), progress=progress)
        if wait > 0:
            raise PostDelayed("as much was written as GitHub allows", retry_after=wait)
        pace.wrote(self._clock.monotonic())

        async def call(token: str) -> Any:
            send = self._github.post if method == "post" else self._github.patch
            return await send(path, data=dict(data), oauth_token=token)

        try:
            return await self._with_token(spot.repository, path, call, may)
        except PostDelayed as error:
            pace.rest(self._clock.monotonic() + (error.retry_after or LIMITED_SECONDS))
            raise

    async def _with_token(
        self,
        repository: str,
        path: str,
        call: Callable[[str], Awaitable[Any]],
        may: Mapping[str, str] = TALKING,
    ) -> Any:
        """Call with a token; one that GitHub does not take any more is replaced once."""
        try:
            with self._told(path):
                return await call(await self.token(repository, may))
        except Unauthorized:
            self._auth.forget(repository)
        with self._told(path):
            return await call(await self.token(repository, may))

    @contextmanager
    def _told(self, path: str) -> Iterator[None]:
        """Put a refusal of GitHub into the words of the bridge."""
        try:
            yield
        except RateLimitExceeded as error:
            until = error.rate_limit.reset_datetime.timestamp() - self._clock.now()
            raise PostDelayed(
                "GitHub's hourly limit is used up", retry_after=max(1.0, until)
            ) from error
        except BadRequest as error:
            raise _refusal(path, error) from error


def _refusal(path: str, error: BadRequest) -> PostDelayed | PostRejected:
    what = f"GitHub refused {path.partition('?')[0]}: {error}"
    headers = error.headers or {}
    retry_after = headers.get("retry-after", "")
    match int(error.status_code):
        case 401:
            return Unauthorized(f"{what}. Check GITHUB_APP_ID and GITHUB_PRIVATE_KEY.")
        case 403 | 429 if retry_after.isdigit():
            return PostDelayed(what, retry_after=float(retry_after))
        case 429:
            return PostDelayed(what, retry_after=LIMITED_SECONDS)
        case 403 if "rate limit" in str(error).lower():
            return PostDelayed(what, retry_after=LIMITED_SECONDS)
        case 404 | 410:
            return Gone(what)
        case _:
            return PostRejected(what)


def _on_lines(remark: Remark) -> dict[str, str | int]:
    where: dict[str, str | int] = {"path": remark.path, "line": remark.last, "side": "RIGHT"}
    if remark.first != remark.last:
        where |= {"start_line": remark.first, "start_side": "RIGHT"}
    return where | {"body": remark.words}


def _comments(found: Any) -> list[Comment]:
    return [Comment.model_validate(each) for each in found]
