"""A generic signed-webhook adapter that stands in for the platforms; its service is `web`."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import asdict
from typing import Any
from uuid import uuid4

import httpx
from typing_extensions import override

from app.core.adapters import Adapter
from app.errors import DeliveryRefused, DeliveryUnreadable, PostDelayed, PostRejected
from app.model.inbound import Answered, Delivery, Heard, Inbound
from app.model.keys import PlaceKey, SessionKey
from app.model.posts import PostSend, PostSent
from app.model.types import Speaker

SECRET = "hook-secret-of-the-tests"
PACE_SECONDS = 0.05


class HookAdapter(Adapter):
    """One agent's presence on the platform of the tests."""

    def __init__(self, agent: str, platform: str, token: str) -> None:
        super().__init__(
            "web",
            agent,
            pace=PACE_SECONDS,
            paths=(f"/webhooks/hook/{agent}",),
            signature_header="X-Hook-Signature",
        )
        self._http = httpx.AsyncClient(
            base_url=platform,
            headers={"Authorization": f"Bearer {token}"},
            trust_env=False,
            verify=False,  # it is plain HTTP, and loading certificates takes 0.1 s
        )

    @override
    def verify(self, headers: dict[bytes, bytes], body: bytes, now: float) -> Delivery:
        expected = sign(body).encode()
        given = headers.get(b"x-hook-signature", b"")
        if not hmac.compare_digest(expected, given):
            raise DeliveryRefused("the signature is wrong")
        return Delivery(
            adapter=self.service_name,
            delivery_id=headers[b"x-hook-delivery"].decode(),
            signature=given.decode(),
            headers={},
            body=body,
            received_at=now,
        )

    @override
    def parse(self, delivery: Delivery) -> Inbound | None:
        try:
            event = json.loads(delivery.body)
            speaker = Speaker(**event["speaker"])
            if "ask" in event:
                return Answered(event["ask"], event["option"], speaker)
            return Heard(
                place=PlaceKey("web", event["place"]),
                external=event["place"],
                message_id=event["message_id"],
                speaker=speaker,
                text=event["text"],
                mentions=tuple(event.get("mentions", ())),
                reply_to=event.get("reply_to"),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise DeliveryUnreadable(f"this event makes no sense: {error}") from error

    @override
    async def refusal(self, speaker: Speaker, place: PlaceKey) -> str | None:
        return "you may not use this agent here" if speaker.id.startswith("outsider") else None

    @override
    async def whisper(self, key: SessionKey, speaker: Speaker, words: str) -> None:
        whisper = {"op": "whisper", "target": str(key), "to": speaker.id, "words": words}
        (await self._http.post("/posts", json=whisper)).raise_for_status()

    @override
    async def send(self, post: PostSend) -> PostSent:
        answer = await self._http.post(
            "/posts",
            json={
                "op": post.op,
                "target": str(post.target),
                "marker": post.marker,
                "content": asdict(post.content),
                "remote_id": post.remote_id,
            },
        )
        if answer.status_code in {404, 410}:
            raise PostRejected("the place is gone")
        if answer.status_code in {429, 503}:
            raise PostDelayed("the platform is busy", retry_after=0.05)
        answer.raise_for_status()
        return PostSent(answer.json()["id"])

    @override
    async def find(self, target: SessionKey, marker: str) -> PostSent | None:
        found = (await self._http.get("/find", params={"marker": marker})).json()["id"]
        return PostSent(found) if found else None

    @override
    async def close(self) -> None:
        await self._http.aclose()


def sign(body: bytes) -> str:
    """Sign a body as the platform does."""
    return hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()


def message(
    place: str, text: str, *mentions: str, speaker: str = "Ann", message_id: str | None = None
) -> dict[str, Any]:
    """Say something as a person does."""
    return {
        "place": place,
        "message_id": message_id or uuid4().hex,
        "speaker": {"id": speaker.lower(), "name": speaker},
        "text": text,
        "mentions": list(mentions),
    }


def request(event: dict[str, Any], delivery_id: str | None = None) -> tuple[bytes, dict[str, str]]:
    """Make the signed request of an event."""
    body = json.dumps(event).encode()
    headers = {
        "x-hook-signature": sign(body),
        "x-hook-delivery": delivery_id or uuid4().hex,
        "content-type": "application/json",
    }
    return body, headers
