"""Checks of each agent's callback: does it take a signed ping."""

from __future__ import annotations

from collections.abc import AsyncIterator

from app.clock import SystemClock
from app.errors import PostError
from app.model.keys import adapter_name
from app.services.service import CheckContext, Finding, ok, problem
from echo_service.callback import Callback
from echo_service.settings import NAME, EchoCredentials


async def checks(context: CheckContext) -> AsyncIterator[Finding]:
    """Send a ping to every callback."""
    for agent, credentials in context.configuration.credentials_of(EchoCredentials).items():
        what, callback = adapter_name(NAME, agent), Callback(credentials, SystemClock())
        setting = context.configuration.agents[agent].setting("ECHO_CALLBACK_URL")
        try:
            await callback.send({"type": "ping", "agent": agent})
        except PostError as error:
            yield problem(what, str(error), f"Check {setting}, and that it answers with 2xx.")
        else:
            yield ok(what, "its callback takes posts")
        finally:
            await callback.close()
