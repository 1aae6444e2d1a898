"""Sends prompts to one live agent, one at a time, with their files, and cancels them.

A prompt that is no longer awaited must not continue: its agent is ended. What is cancelled ends
together with the sub-agents that it started.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from acp import text_block
from acp.schema import PromptCapabilities, TextContentBlock, Usage
from pydantic import ValidationError

from app.acp.attachments import Block, blocks_of
from app.acp.handshake import OpenedConversation
from app.acp.json_values import mapping
from app.acp.offers import NotOffered, SetMode, SetModel, SetOption, Value, Way
from app.acp.peer import AT_ONCE, AgentPeer, AgentTimeouts
from app.errors import AgentError, AgentRefused, AgentTimedOut, Conflict
from app.model.agents import Choices
from app.model.background import Woken, Work
from app.model.ports import AgentListener
from app.model.subagents import Subagent
from app.model.types import Attachment
from app.model.updates import (
    AskRequest,
    BridgeUpdate,
    NoticeUpdate,
    PromptEnd,
    StateUpdate,
    Tokens,
    UsageUpdate,
)
from app.tasks import Tasks

ANNOUNCED_SECONDS = 0.25
"""A command may have begun this long before the update that tells of it is read."""
NOT_OFFERED = -32602  # JSON-RPC's "invalid params": what the agent itself would say


class AcpSession:
    """One conversation; implements the core's port `AgentSession`."""

    def __init__(self, peer: AgentPeer, begun: OpenedConversation, timeouts: AgentTimeouts) -> None:
        self._peer = peer
        self._session_id = begun.session_id
        self.offers = begun.offers
        """What it can be set to, as the agent last reported."""
        self.capabilities = begun.capabilities
        """What the agent can do."""
        self._is_told = begun.steerable
        self._timeouts = timeouts
        self._idle = asyncio.Event()
        self._idle.set()
        self._cancelled = False
        self._overdue = False
        self._prompted = False
        self._made_way = asyncio.Event()

    @property
    def acp_session_id(self) -> str:
        """The agent's id of the conversation."""
        return self._session_id

    @property
    def alive(self) -> bool:
        """Whether the agent can be prompted, now or after its turn."""
        return self._peer.alive

    @property
    def steerable(self) -> bool:
        """Whether words can go into a running turn: it is told of them, or asks for them."""
        return self._is_told or self._peer.audience.pulled.is_used

    @property
    def choices(self) -> Choices:
        """The modes and models that it offers."""
        return self.offers.choices

    @property
    def woken(self) -> Woken | None:
        """What woke the agent, if it began something by itself that no turn has taken."""
        return self._peer.audience.woken

    @property
    def work(self) -> tuple[Work, ...]:
        """What goes on besides its turns."""
        return self._peer.audience.background.work

    async def prompt(
        self,
        text: str,
        listener: AgentListener,
        *,
        files: Sequence[Attachment] = (),
        turn: int = 0,
    ) -> PromptEnd:
        """Send a prompt and follow it until the agent ends its turn.

        `turn` is what later updates of calls that begin now are told by.

        Raises:
            Conflict: it is still at an earlier prompt.
            AgentError: it died, hung, misbehaved or answered with an error.
        """
        if not self._idle.is_set():
            raise Conflict(f"{self._peer.name} is still working on an earlier prompt")
        self._idle.clear()
        self._cancelled = False
        if not self._prompted:
            listener = _UntilAnswered(listener, self._peer)
        try:
            async with self._peer.at_work():
                try:
                    blocks = await self._blocks(text, files)
                    return await self._converse(blocks, listener, turn)
                except asyncio.CancelledError:
                    self._peer.abandon()
                    raise
        finally:
            self._idle.set()

    async def follow(self, listener: AgentListener, *, turn: int) -> PromptEnd:
        """Follow what the agent began by itself until it rests, or makes way for a prompt.

        Raises:
            Conflict: it is at a prompt.
            AgentError: it died or misbehaved.
        """
        if not self._idle.is_set():
            raise Conflict(f"{self._peer.name} is still working on an earlier prompt")
        self._idle.clear()
        self._cancelled = False
        self._made_way.clear()
        audience = self._peer.audience
        try:
            async with self._peer.at_work(), self._peer.step("its own work", None):
                try:
                    for update in audience.listen(listener, turn):
                        await listener.on_update(update)
                    await audience.catch_up()
                    await self._until_it_rests()
                except asyncio.CancelledError:
                    self._peer.abandon()
                    raise
                finally:
                    audience.leave(deaf=self._cancelled)
        finally:
            self._idle.set()
        return PromptEnd("cancelled" if self._cancelled else "end_turn")

    async def _until_it_rests(self) -> None:
        """Wait for the end of the agent's own work.

        Raises:
            ConnectionError: its stream ended.
        """
        tasks = Tasks("own work")
        ends = [
            tasks.start(self._peer.audience.own_work.ended(), name="rest"),
            tasks.start(self._made_way.wait(), name="way"),
            tasks.start(self._peer.transport.finished.wait(), name="stream"),
        ]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await tasks.close()
        if self._peer.transport.finished.is_set():
            raise ConnectionError("the agent's stream ended")

    def make_way(self) -> None:
        """End `follow`: what the agent does from now on belongs to the prompt that comes."""
        self._made_way.set()

    async def silence(self) -> None:
        """Ask the agent to end what it does by itself, and take no turn for it until a prompt."""
        self._peer.audience.ignore()
        with suppress(ConnectionError):  # it is gone, which ends all that it does
            await self._peer.connection.cancel(session_id=self._session_id)

    async def steer(self, text: str, *, files: Sequence[Attachment] = ()) -> bool:
        """Put words into the running turn; False if the agent did not take them.

        Raises:
            AgentError: it died or did not answer; it may have taken them.
        """
        if self._idle.is_set() or self._cancelled:
            return False
        if not self._is_told and self.steerable:
            return await self._peer.audience.pulled.offer(text)
        blocks = await self._blocks(text, files)
        words = {
            "sessionId": self._session_id,
            "prompt": [each.model_dump(by_alias=True, exclude_none=True) for each in blocks],
            # Without it, an agent that has just ended its turn begins one that no request owns.
            "_meta": {"steering": {"idleBehavior": "promptRequired"}},
        }
        try:
            async with self._peer.step("_session/steering", self._timeouts.steer):
                answer = await self._peer.transport.request("_session/steering", words)
        except AgentRefused:
            return False
        return mapping(answer).get("outcome") == "injected"

    @property
    def subagents(self) -> Sequence[Subagent]:
        """The sub-agents that are at work, also between turns."""
        return self._peer.audience.subagents.running

    async def stop_subagent(self, key: str) -> bool:
        """Ask a sub-agent to end its work, alone; False if it cannot be stopped alone, or is over.

        Raises:
            AgentError: its agent is gone.
        """
        audience = self._peer.audience
        known = audience.subagents.find(key)
        if known is None or not known.can_stop:
            return False
        async with self._peer.step("session/cancel", self._timeouts.cancel):
            await self._peer.connection.cancel(session_id=key)
        audience.withdraw_asks_of(key)
        return True

    async def cancel(self) -> None:
        """Ask the agent to end its turn and its sub-agents, and end the agent if it does not."""
        if self._idle.is_set() and not self.subagents:
            return
        self._cancelled = True
        try:
            async with asyncio.timeout(self._timeouts.cancel):
                await self._peer.connection.cancel(session_id=self._session_id)
                self._peer.audience.hush()
                for each in self.subagents:
                    if each.can_stop:  # some agents spare those in the background
                        await self._peer.connection.cancel(session_id=each.key)
                await self._peer.audience.subagents.wait_until_calm()
                await self._idle.wait()
        except TimeoutError:
            self._overdue = not self._idle.is_set()
            await self._peer.close(AT_ONCE)
            await self._idle.wait()
        except ConnectionError:
            await self._idle.wait()  # it is gone, which ends its prompt

    async def configure(self, *, mode: str | None, model: str | None) -> None:
        """Set mode and model where the agent offers them.

        Raises:
            AgentRefused: it does not offer that, or refused it.
            AgentError: it did not answer, and was ended.
        """
        if mode is not None:
            await self._grant(self.offers.mode(mode))
        if model is not None:
            await self._grant(self.offers.model(model))

    async def choose(self, options: Mapping[str, Value]) -> None:
        """Set options by their ids.

        Raises:
            AgentRefused: it does not offer that, or refused it.
            AgentError: it did not answer, and was ended.
        """
        for name, value in options.items():
            await self._grant(self.offers.option(name, value))

    async def close(self) -> None:
        """Let the agent close the conversation if it can, and end all that it started."""
        sessions = self.capabilities.session_capabilities
        if (
            self.alive
            and self._idle.is_set()
            and sessions is not None
            and sessions.close is not None
        ):
            with suppress(AgentError):  # its process ends in any case
                async with self._peer.step("session/close", self._timeouts.close):
                    await self._peer.transport.request(
                        "session/close", {"sessionId": self._session_id}
                    )
        await self._peer.close()

    async def _blocks(
        self, text: str, files: Sequence[Attachment]
    ) -> list[TextContentBlock | Block]:
        # Halves of surrogate pairs, which platforms may deliver, cannot be carried by JSON.
        words = text_block(text.encode(errors="replace").decode())
        if not files:
            return [words]
        offered = self.capabilities.prompt_capabilities or PromptCapabilities()
        is_remote = bool(self._peer.remote_folder)
        return [words, *await asyncio.to_thread(blocks_of, files, offered, is_remote=is_remote)]

    async def _converse(
        self, blocks: list[TextContentBlock | Block], listener: AgentListener, turn: int
    ) -> PromptEnd:
        audience = self._peer.audience
        news = audience.listen(listener, turn)
        try:
            async with self._peer.step("session/prompt", None):
                try:
                    for update in news:
                        await listener.on_update(update)
                    await audience.catch_up()
                    if self._cancelled:  # a cancel that overtook its prompt would be ignored
                        return PromptEnd("cancelled")
                    if not self._prompted:
                        self._prompted = True
                        self._peer.note_begin()
                    answer = await self._peer.connection.prompt(
                        session_id=self._session_id, prompt=blocks
                    )
                finally:
                    # At once: what comes after the answer is the agent's own work.
                    audience.leave(deaf=self._cancelled)
        except AgentRefused:
            if self._cancelled:  # some agents answer a cancelled prompt with an error
                return PromptEnd("cancelled")
            raise
        except AgentError:
            await self._peer.close()
            if self._overdue:
                timeout = self._timeouts.cancel
                raise AgentTimedOut(self._peer.name, "session/cancel", timeout) from None
            raise
        failed = audience.has_failed and answer.stop_reason == "end_turn"
        return PromptEnd(answer.stop_reason, self._usage(answer.usage), failed=failed)

    def _usage(self, usage: Usage | None) -> UsageUpdate | None:
        """Return the tokens used; how full the context is only if the agent did not say so."""
        if usage is None:
            return None
        used = None if self._peer.audience.heard_usage else usage.total_tokens
        return UsageUpdate(used=used, tokens=_tokens(usage))

    async def _grant(self, way: Way) -> None:
        if isinstance(way, NotOffered):
            raise AgentRefused(self._peer.name, NOT_OFFERED, way.reason)
        try:
            async with self._peer.at_work():
                await self._set(way)
        except AgentRefused:
            raise
        except AgentError:
            await self._peer.close(AT_ONCE)
            raise

    async def _set(self, way: SetMode | SetModel | SetOption) -> None:
        if isinstance(way, SetMode):
            async with self._peer.step("session/set_mode", self._timeouts.configure):
                await self._peer.connection.set_session_mode(
                    session_id=self._session_id, mode_id=way.mode
                )
            return
        if isinstance(way, SetModel):
            async with self._peer.step("session/set_model", self._timeouts.configure):
                await self._peer.transport.request(
                    "session/set_model",
                    {"sessionId": self._session_id, "modelId": way.model},
                )
            return
        async with self._peer.step("session/set_config_option", self._timeouts.configure):
            await self._set_option(way)

    async def _set_option(self, way: SetOption) -> None:
        try:
            answer = await self._peer.connection.set_config_option(
                config_id=way.option, session_id=self._session_id, value=way.value
            )
        except ValidationError:
            return  # it worked, but the agent does not say what is offered now
        self.offers = replace(self.offers, options=tuple(answer.config_options))


class _UntilAnswered:
    """Passes on what an agent does in its first turn, and notes when its model first answers.

    What serves tools is running by then, since the first request to a model names its tools; it
    need not be when the prompt is written. A command comes only after an answer.
    """

    def __init__(self, listener: AgentListener, peer: AgentPeer) -> None:
        self._listener = listener
        self._peer = peer
        self._answered = False

    async def on_update(self, update: BridgeUpdate) -> None:
        """Pass on an update."""
        if not isinstance(update, (StateUpdate, UsageUpdate, NoticeUpdate)):
            self._note()
        await self._listener.on_update(update)

    async def on_ask(self, request: AskRequest) -> str | None:
        """Pass on an ask."""
        self._note()
        return await self._listener.on_ask(request)

    def _note(self) -> None:
        if not self._answered:
            self._answered = True
            self._peer.note_begin(seconds_ago=ANNOUNCED_SECONDS)


def _tokens(usage: Usage) -> Tokens:
    """Count each token once: some agents count cached tokens as input, thoughts as output."""
    read, write = usage.cached_read_tokens or 0, usage.cached_write_tokens or 0
    thought, total = usage.thought_tokens or 0, usage.total_tokens
    apart = usage.input_tokens + usage.output_tokens + thought + read + write <= total
    if apart:
        return Tokens(usage.input_tokens, usage.output_tokens + thought, read, write)
    return Tokens(max(0, usage.input_tokens - read - write), usage.output_tokens, read, write)
