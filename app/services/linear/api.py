"""Calls Linear's GraphQL API with static documents, and classifies errors by what to do.

The outbox waits and retries; here a call is made once, and once more only with a new token.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import httpx
from pydantic import SecretStr

from app.clock import Clock
from app.config.network import HostPattern
from app.errors import PostDelayed, PostRejected, ServiceRefused
from app.services.common.outgoing import Outgoing
from app.services.linear.auth import LinearTokens
from app.vault import Vault

CALL_SECONDS: Final = 8.0
"""Time limit of one call: less than the ten seconds in which Linear expects a first activity."""
LONGEST_WAIT_SECONDS: Final = 60.0
"""Linear's limits refill continuously, so no call waits for the hour to end."""

OWN_HOSTS: Final = "*.linear.app"
"""Where pictures may be: what is fetched from there tells Linear alone."""
KEPT: Final = "public, max-age=31536000"
"""The caching header that Linear requires for uploads: an address never changes its content."""

_DOCUMENTS: Final = Path(__file__).parent / "documents"
_NEVER: Final = {
    "INPUT_ERROR",
    "INVALID_INPUT",
    "ENTITY_NOT_FOUND",
    "FORBIDDEN",
    "FEATURE_NOT_ACCESSIBLE",
    "GRAPHQL_VALIDATION_FAILED",
}

DocumentName = Literal[
    "activity",
    "attachments",
    "author",
    "create_activity",
    "create_session",
    "delete_comment",
    "duties",
    "issue_sessions",
    "links",
    "prompts",
    "sessions",
    "subject",
    "suggestions",
    "update_issue",
    "update_session",
    "upload",
    "user",
    "viewer",
]


class LinearFailed(PostDelayed):
    """Linear could not do it, for a reason that is not known to last."""


class LinearUndone(LinearFailed):
    """Linear answered a change without making it, and does not say why."""


class LinearRefused(PostRejected):
    """Linear says no, and will say so again."""

    def __init__(self, message: str, code: str) -> None:
        self.missing = _says_missing(message) or code == "ENTITY_NOT_FOUND"
        """Whether the named object does not exist."""
        self.forbidden = code == "FORBIDDEN"
        """Whether it exists, but this token may not use it."""
        super().__init__(f"Linear: {message} ({code})")


class UploadFailed(PostDelayed):
    """Linear's upload host could not be reached, even if its API can be."""


class LinearApi:
    """The GraphQL API, called as one agent."""

    def __init__(
        self,
        url: str,
        tokens: LinearTokens,
        clock: Clock,
        vault: Vault | None = None,
        pictures: Sequence[HostPattern] = (),
    ) -> None:
        """Call as an agent; `pictures` are the hosts on its list."""
        self._url = url
        self._uploads = uploads_address(url)
        self._tokens = tokens
        own = (OWN_HOSTS, urlsplit(self._uploads).netloc)
        self._outgoing = Outgoing(vault or Vault(), own, pictures)
        self._clock = clock
        self._client: httpx.AsyncClient | None = None
        self._opening = asyncio.Lock()
        self.trouble = ""
        """Why the last call failed; empty if it did not."""

    async def call(self, name: DocumentName, **variables: object) -> dict[str, Any]:
        """Send a document and return its data.

        Raises:
            PostDelayed: not now.
            LinearRefused: never.
            ServiceRefused: not with these credentials.
        """
        cleaned = self._outgoing.clean(variables)
        try:
            token = await self._tokens.current(self._exchange)
            answer = await self._send(name, cleaned, token)
            if _is_unauthenticated(answer):
                token = await self._tokens.renew(token, self._exchange)
                answer = await self._send(name, cleaned, token)
                if _is_unauthenticated(answer):
                    raise self._tokens.refused("Linear rejected a token it just issued")
            data = self._data(answer)
        except LinearRefused:
            raise
        except (PostDelayed, ServiceRefused) as error:
            self.trouble = str(error)
            raise
        self.trouble = ""
        if any(isinstance(each, dict) and each.get("success") is False for each in data.values()):
            raise LinearUndone(f"Linear did not carry out {name}")
        return data

    async def download(self, upload: str) -> AsyncGenerator[bytes, None]:
        """Read a file that is attached to an issue or a comment.

        Raises:
            PostDelayed: not now.
            PostRejected: never.
            ServiceRefused: not with these credentials.
        """
        token = await self._tokens.current(self._exchange)
        try:
            answer = await self._request_upload(upload, token)
            if answer.status_code == httpx.codes.UNAUTHORIZED:
                await answer.aclose()
                token = await self._tokens.renew(token, self._exchange)
                answer = await self._request_upload(upload, token)
            async with aclosing(answer):
                if answer.status_code == httpx.codes.UNAUTHORIZED:
                    raise self._tokens.refused("Linear rejected a token it just issued")
                if answer.status_code != httpx.codes.OK:
                    raise PostRejected(f"status {answer.status_code}")
                async for chunk in answer.aiter_bytes():
                    yield chunk
        except httpx.TransportError as error:
            raise PostDelayed(f"Linear cannot be reached ({type(error).__name__})") from error

    async def _request_upload(self, upload: str, token: SecretStr) -> httpx.Response:
        client = await self._open_client()
        headers = {"Authorization": f"Bearer {token.get_secret_value()}"}
        request = client.build_request("GET", f"{self._uploads}/{upload}", headers=headers)
        return await client.send(request, stream=True)

    async def install(self, code: str, back: str) -> None:
        """Exchange the code that an admin brings back for tokens, and store them.

        Raises:
            PostDelayed: not now.
            ServiceRefused: Linear issues none for it.
        """
        await self._tokens.install(code, back, self._exchange)

    async def upload(self, name: str, media_type: str, content: bytes) -> str:
        """Upload a file to Linear; returns the address to use in a text.

        Raises:
            UploadFailed: it could not be sent.
            PostDelayed: not now.
            PostRejected: never.
            ServiceRefused: not with these credentials.
        """
        size = len(content)
        try:
            answer = await self.call("upload", contentType=media_type, filename=name, size=size)
        except LinearUndone:
            raise PostRejected("Linear rejected the upload") from None
        place = answer["fileUpload"]["uploadFile"]
        if place is None:
            raise PostRejected("Linear rejected the upload")
        # Without the token: the address itself authorises the upload.
        headers = {"Content-Type": media_type, "Cache-Control": KEPT}
        headers |= {each["key"]: each["value"] for each in place["headers"]}
        client = await self._open_client()
        try:
            taken = await client.put(place["uploadUrl"], content=content, headers=headers)
        except httpx.TransportError as error:
            raise UploadFailed(f"the file could not be sent ({type(error).__name__})") from error
        if not taken.is_success:
            raise PostRejected(f"status {taken.status_code}")
        return str(place["assetUrl"])

    async def close(self) -> None:
        """Close the connection."""
        await self._tokens.close()
        if self._client is not None:
            await self._client.aclose()

    async def _send(
        self, name: DocumentName, variables: dict[str, object], token: SecretStr
    ) -> httpx.Response:
        return await self._post(
            self._url,
            json={"query": document(name), "variables": variables},
            headers={"Authorization": f"Bearer {token.get_secret_value()}"},
        )

    async def _exchange(self, address: str, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        answer = await self._post(address, data=form)
        return answer.status_code, _object(answer)

    async def _post(self, address: str, **content: Any) -> httpx.Response:
        client = await self._open_client()
        try:
            return await client.post(address, **content)
        except httpx.TransportError as error:
            # What may have arrived can be resent: every activity has its own id.
            raise PostDelayed(f"Linear cannot be reached ({type(error).__name__})") from error

    async def _open_client(self) -> httpx.AsyncClient:
        async with self._opening:
            if self._client is None:
                # In a thread, since loading certificates takes 0.1 s.
                self._client = await asyncio.to_thread(
                    httpx.AsyncClient,
                    timeout=CALL_SECONDS,
                    verify=self._url.startswith("https:"),
                    trust_env=self._url.startswith("https:"),
                )
            return self._client

    def _data(self, answer: httpx.Response) -> dict[str, Any]:
        found, status = _object(answer), answer.status_code
        data = found.get("data")
        if not found.get("errors") and status == httpx.codes.OK and isinstance(data, dict):
            return data
        message, code = _first_error(found)
        if code == "RATELIMITED" or status == httpx.codes.TOO_MANY_REQUESTS:
            reset = answer.headers.get("x-ratelimit-requests-reset", "")
            seconds = float(reset) / 1000 - self._clock.now() if reset.isdigit() else 0.0
            wait = min(max(seconds, 1.0), LONGEST_WAIT_SECONDS)
            raise PostDelayed("Linear rate limit reached", retry_after=wait)
        if code in _NEVER or _says_missing(message):
            raise LinearRefused(message, code)
        raise LinearFailed(f"Linear returned status {status}: {message or 'no data'}")


def uploads_address(api_url: str) -> str:
    """Return where Linear stores files: on a host next to the API's, else on the API's own."""
    parts = urlsplit(api_url)
    if parts.netloc.startswith("api."):
        return f"{parts.scheme}://uploads.{parts.netloc.removeprefix('api.')}"
    return f"{parts.scheme}://{parts.netloc}/uploads"


@cache
def document(name: DocumentName) -> str:
    """Read a document."""
    return (_DOCUMENTS / f"{name}.graphql").read_text()


def _object(answer: httpx.Response) -> dict[str, Any]:
    try:
        found = answer.json()
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _first_error(answer: dict[str, Any]) -> tuple[str, str]:
    """Return message and code of the first error."""
    errors = answer.get("errors")
    first = errors[0] if isinstance(errors, list) and errors else {}
    first = first if isinstance(first, dict) else {}
    extensions = first.get("extensions")
    code = extensions.get("code", "") if isinstance(extensions, dict) else ""
    return str(first.get("message", "")), str(code).upper()


def _is_unauthenticated(answer: httpx.Response) -> bool:
    code = _first_error(_object(answer))[1]
    return answer.status_code == httpx.codes.UNAUTHORIZED or code == "AUTHENTICATION_ERROR"


def _says_missing(message: str) -> bool:
    return "entity not found" in message.lower()
