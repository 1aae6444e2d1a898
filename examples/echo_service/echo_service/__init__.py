"""Echo: a signed webhook in, a signed JSON callback out."""

from __future__ import annotations

from collections.abc import AsyncIterator

from app.config import IdForm
from app.services.service import (
    BuildContext,
    CheckContext,
    Finding,
    ManifestRequest,
    Presence,
    Service,
)
from echo_service.settings import NAME, EchoCredentials, EchoSettings


def build(context: BuildContext) -> Presence:
    """Make the presence of every agent that has credentials."""
    from echo_service.adapter import EchoAdapter  # noqa: PLC0415 - httpx, 0.1 s

    configuration = context.configuration
    return Presence(
        [
            EchoAdapter(agent, given, configuration.webhook_paths(NAME, agent), context.clock)
            for agent, given in configuration.credentials_of(EchoCredentials).items()
        ]
    )


def checks(context: CheckContext) -> AsyncIterator[Finding]:
    """Send a ping to every callback."""
    from echo_service.doctor import checks as run  # noqa: PLC0415 - httpx, 0.1 s

    return run(context)


def manifest(request: ManifestRequest) -> None:
    """Say where to send messages and how to sign them."""
    path = request.configuration.webhook_paths(NAME, request.agent.name)[0]
    secret, callback = map(request.agent.setting, ("ECHO_WEBHOOK_SECRET", "ECHO_CALLBACK_URL"))
    request.write(
        f"""How to talk to {request.title} over webhooks:
1. Set {secret} to at least 16 random characters.
2. Set {callback} to the address that takes its posts.
3. POST messages as JSON to {request.configuration.base_url}{path}, with these headers:
   X-Echo-Timestamp  seconds since 1970
   X-Echo-Delivery   an id of your choice
   X-Echo-Signature  hex HMAC-SHA256 of TIMESTAMP.DELIVERY.BODY with the secret
4. Run `agent-bridge doctor`, then `agent-bridge serve`."""
    )


SERVICE = Service(
    name=NAME,
    label="Echo",
    credentials=EchoCredentials,
    settings=EchoSettings,
    people=IdForm(r"[A-Za-z0-9._-]+", "ann"),
    build=build,
    checks=checks,
    manifest=manifest,
)
