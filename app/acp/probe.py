"""Probes an agent: tries everything that the bridge would use and records the result.

Its prompts are plain requests, so that models follow them, and end with a line that the demo agent
obeys. A step that needs one that failed is skipped and does not count as a failure.
"""

from __future__ import annotations

import asyncio
import logging
import struct
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from acp.schema import InitializeResponse

from app.acp.card import Card, ProbeStep, Verdict
from app.acp.handshake import Handshake, OpenedConversation, Restored
from app.acp.json_values import mapping, objects
from app.acp.peer import AgentPeer
from app.acp.session import AcpSession
from app.acp.visits import Visits
from app.clock import Clock
from app.descent import discard
from app.errors import AgentError, BridgeError
from app.model.types import Attachment
from app.model.updates import AskRequest, BridgeUpdate, PromptEnd, TextUpdate
from app.model.workspaces import attachment_folder
from app.tasks import Tasks

logger = logging.getLogger(__name__)

STEPS = (
    *("initialize", "new", "mode", "prompt", "permission", "cancel", "image"),
    *("list", "close", "resume", "load"),
)
STEP_SECONDS = 120.0  # a slow model, and a tool call or two; longer is a failure
REMARK_CHARACTERS = 160  # one line of a table
WORD = "heron"
TRACE = "probe-was-here.txt"

READY = f"Remember the word {WORD}. Then answer with one word and use no tools.\nsay ready"
RUN = (
    "Run exactly this shell command with your tool for that, and nothing else. "
    f"If it is refused, stop.\nrun echo {WORD} > {TRACE}"
)
COUNT = "Count from one to a thousand in words, one per line. Use no tools.\nslow 600"
LOOK = "What does the attached picture show? Answer in one sentence, use no tools.\nsay I see"
RECALL = "Which word were you told to remember? Answer with it and use no tools.\nrecall"

Told = Callable[[str], None]
Attempt = Callable[[], Awaitable[str]]


class Unlike(BridgeError):
    """A step that did not work."""

    def __init__(self, verdict: Verdict, remark: str) -> None:
        self.verdict: Verdict = verdict
        super().__init__(remark)


@dataclass
class ProbeListener:
    """Listens to a prompt and rejects every ask."""

    text: str = ""
    asks: list[AskRequest] = field(default_factory=list)
    something: asyncio.Event = field(default_factory=asyncio.Event)

    async def on_update(self, update: BridgeUpdate) -> None:
        """Remember what was said."""
        if isinstance(update, TextUpdate):
            self.text += update.text
            self.something.set()

    async def on_ask(self, request: AskRequest) -> str | None:
        """Reject."""
        self.asks.append(request)
        return next((each.id for each in request.options if each.kind.startswith("reject")), None)


class Probe:
    """One probe of one agent."""

    def __init__(self, visits: Visits, clock: Clock, told: Told) -> None:
        """Prepare; `told` gets the name of each step when it begins."""
        # The results of an earlier probe must not make this one skip anything.
        self._visits = replace(visits, launch=replace(visits.launch, card=None))
        self._clock = clock
        self._told = told
        self._steps: dict[str, ProbeStep] = {}
        self._version = ""
        self._session_id = ""

    async def run(self) -> Card:
        """Take the agent through every step; failures are recorded on the card."""
        await asyncio.to_thread(self._clear)
        try:
            await self._visit("initialize", self._meet)
            await self._return("resume", "resumed")
            await self._return("load", "loaded")
        finally:
            await asyncio.to_thread(self._clear)
        launch = self._visits.launch
        steps = tuple(
            self._steps.get(name) or ProbeStep(name, "skipped", 0.0, "an earlier step failed")
            for name in STEPS
        )
        return Card(launch.name, launch.argv, self._version, self._clock.now(), steps)

    async def _meet(self, peer: AgentPeer) -> None:
        """Open a conversation and try everything that can be done in one."""
        met: dict[str, AcpSession] = {}

        async def initialize() -> str:
            return self._known(await handshake.introduce())

        async def new() -> str:
            await handshake.authenticate()
            begun = await handshake.new()
            met["session"] = self._conversation(peer, begun)
            return begun.session_id

        handshake = self._handshake(peer)
        if not await self._try("initialize", initialize) or not await self._try("new", new):
            return
        agent = met["session"]
        self._session_id = agent.acp_session_id
        await self._try("mode", lambda: self._mode(agent), agent)
        if await self._try("prompt", lambda: self._prompt(agent), agent):
            await self._try("permission", lambda: self._permission(agent), agent)
            await self._try("cancel", lambda: self._cancel(agent), agent)
            await self._try("image", lambda: self._image(agent), agent)
        await self._try("list", lambda: self._list(peer, agent), agent)
        await self._try("close", lambda: self._close(peer, agent), agent)

    async def _return(self, name: str, way: Restored) -> None:
        """Restore the conversation in another process, and check that it is the same one."""

        async def bring_back(peer: AgentPeer) -> str:
            handshake = self._handshake(peer)
            await handshake.introduce()
            if way not in handshake.ways_back():
                raise Unlike("absent", "it does not offer that")
            await handshake.authenticate()
            begun = await handshake.bring_back(way, self._session_id)
            agent = self._conversation(peer, begun)
            try:
                await self._settings(agent)
                witness, _ = await self._say(agent, RECALL)
            except (AgentError, Unlike) as error:
                # It was restored: a later failure must not hide that.
                raise Unlike("skipped", f"restored, but could not be asked: {error}") from None
            if WORD not in witness.text.lower():
                raise Unlike("fails", f"restored without its memory: {witness.text!r}")
            return "it remembers"

        if not self._worked("prompt"):
            return
        wait = self._visits.launch.settle_seconds_before_load
        if wait:
            self._told(f"{name}, in {wait:g} s: waiting for its record to settle")
            await self._clock.sleep(wait)

        async def meet_again(peer: AgentPeer) -> None:
            await self._try(name, lambda: bring_back(peer))

        await self._visit(name, meet_again)

    # The steps.

    async def _mode(self, agent: AcpSession) -> str:
        await self._settings(agent)
        names = agent.offers.mode_names
        if not names:
            raise Unlike("absent", "it offers no modes")
        wanted = self._visits.launch.mode
        if wanted is None:
            await agent.configure(mode=names[0], model=None)
        return f"{wanted or names[0]!r}, of {', '.join(names)}"

    async def _prompt(self, agent: AcpSession) -> str:
        witness, end = await self._say(agent, READY)
        return f"{end.stop_reason}: {witness.text!r}"

    async def _permission(self, agent: AcpSession) -> str:
        witness = ProbeListener()
        await agent.prompt(RUN, witness)
        if (self._visits.workspace / TRACE).exists():
            how = "although it was rejected" if witness.asks else "without asking"
            raise Unlike("fails", f"it ran a command {how}; give it a mode that asks")
        if not witness.asks and self._visits.launch.remote is not None:
            raise Unlike("skipped", "it did not ask, and what it ran there is not seen from here")
        if not witness.asks:
            raise Unlike("skipped", f"it did not try to run anything: {witness.text!r}")
        names = ", ".join(option.name for option in witness.asks[0].options)
        return f"it asks: {names}"

    async def _cancel(self, agent: AcpSession) -> str:
        cancelled = 0.0

        async def cut_short() -> None:
            nonlocal cancelled
            await witness.something.wait()
            cancelled = self._clock.monotonic()
            await agent.cancel()

        witness, tasks = ProbeListener(), Tasks("probe")
        tasks.start(cut_short(), name="cancel")
        try:
            end = await agent.prompt(COUNT, witness)
        finally:
            await tasks.close()
        if end.stop_reason != "cancelled":
            raise Unlike("skipped", f"it was done before it was cancelled ({end.stop_reason})")
        return f"it ended {(self._clock.monotonic() - cancelled) * 1000:.0f} ms later"

    async def _image(self, agent: AcpSession) -> str:
        prompts = agent.capabilities.prompt_capabilities
        if prompts is None or not prompts.image:
            raise Unlike("absent", "it takes no images")
        path = attachment_folder(self._visits.workspace) / "probe.png"
        await asyncio.to_thread(path.write_bytes, red_square())
        witness, end = await self._say(agent, LOOK, Attachment(path, "image/png"))
        return f"{end.stop_reason}: {witness.text!r}"

    async def _list(self, peer: AgentPeer, agent: AcpSession) -> str:
        sessions = agent.capabilities.session_capabilities
        if sessions is None or sessions.list is None:
            raise Unlike("absent", "it does not offer that")
        async with peer.step("session/list", self._visits.timeouts.load):
            answer = await peer.transport.request(
                "session/list", {"cwd": self._handshake(peer).folder}
            )
        found = [each.get("sessionId") for each in objects(mapping(answer).get("sessions"))]
        known = "this one among them" if self._session_id in found else "not this one"
        count = f"{len(found)} conversation{'' if len(found) == 1 else 's'}"
        return f"{count}, {known}"

    async def _close(self, peer: AgentPeer, agent: AcpSession) -> str:
        sessions = agent.capabilities.session_capabilities
        if sessions is None or sessions.close is None:
            raise Unlike("absent", "it does not offer that")
        async with peer.step("session/close", self._visits.timeouts.close):
            await peer.transport.request("session/close", {"sessionId": self._session_id})
        return ""

    # What the steps share.

    async def _try(self, name: str, attempt: Attempt, agent: AcpSession | None = None) -> bool:
        """Take one step and record how it ended; skip it if the agent is gone."""
        if agent is not None and not agent.alive:
            return False
        self._told(name)
        began = self._clock.monotonic()
        verdict: Verdict = "works"
        try:
            async with asyncio.timeout(STEP_SECONDS):
                remark = await attempt()
        except Unlike as unlike:
            verdict, remark = unlike.verdict, str(unlike)
        except AgentError as error:
            verdict, remark = "fails", str(error)
        except TimeoutError:
            verdict, remark = "fails", f"not done within {STEP_SECONDS:g} s"
        self._note(name, verdict, self._clock.monotonic() - began, remark)
        return verdict == "works"

    async def _visit(self, name: str, work: Callable[[AgentPeer], Awaitable[None]]) -> None:
        """Visit the agent; if it cannot be started, the first step of the visit failed."""
        try:
            async with self._visits.begin(ProbeListener()) as peer:
                await work(peer)
        except AgentError as error:
            self._note(name, "fails", 0.0, str(error))

    async def _say(
        self, agent: AcpSession, words: str, *files: Attachment
    ) -> tuple[ProbeListener, PromptEnd]:
        witness = ProbeListener()
        end = await agent.prompt(words, witness, files=files)
        if end.stop_reason != "end_turn" or not witness.text.strip():
            raise Unlike("fails", f"it ended with {end.stop_reason}: {witness.text!r}")
        return witness, end

    async def _settings(self, agent: AcpSession) -> None:
        """Apply the configured settings, as at the beginning of every conversation."""
        launch = self._visits.launch
        await agent.configure(mode=None, model=launch.model)
        await agent.choose(launch.options)
        await agent.configure(mode=launch.mode, model=None)

    def _handshake(self, peer: AgentPeer) -> Handshake:
        visits = self._visits
        return Handshake(peer, visits.launch, visits.workspace, visits.timeouts)

    def _conversation(self, peer: AgentPeer, begun: OpenedConversation) -> AcpSession:
        return AcpSession(peer, begun, self._visits.timeouts)

    def _known(self, answer: InitializeResponse) -> str:
        agent = answer.agent_info
        if agent is None:
            return "it does not say who it is"
        self._version = agent.version
        return f"{agent.title or agent.name} {agent.version}"

    def _worked(self, name: str) -> bool:
        step = self._steps.get(name)
        return step is not None and step.verdict == "works"

    def _note(self, name: str, verdict: Verdict, seconds: float, remark: str) -> None:
        words = " ".join(remark.split())
        if len(words) > REMARK_CHARACTERS:
            words = f"{words[: REMARK_CHARACTERS - 1]}…"
        self._steps[name] = ProbeStep(name, verdict, round(seconds, 3), words)
        logger.info("%s: %s %s (%s)", self._visits.launch.name, name, verdict, words)

    def _clear(self) -> None:
        """Remove workspace and attachments, before and after the probe."""
        for folder in (self._visits.workspace, attachment_folder(self._visits.workspace)):
            discard(folder)


def red_square() -> bytes:
    """Draw a picture that every model accepts: 64 by 64 red pixels."""
    side = 64
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    points = zlib.compress((b"\0" + b"\xff\0\0" * side) * side)
    parts = ((b"IHDR", header), (b"IDAT", points), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )
