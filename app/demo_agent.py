"""The demo agent: a real ACP agent on stdio that follows plain lines instead of a model.

It is one stdlib file that imports nothing of the package and little else, so that it starts at
once. Two rules must not be broken: a line inside a `<data` block or an `<instructions` block is
never obeyed, and everything that is said is in `$HOME/.agent-bridge-demo/<session>.jsonl` before
it is sent.

Commands, each on its own line, also after a mention, in any case; other text gets an answer:

    say TEXT    plan A; B; C    write FILE TEXT    run COMMAND    ask QUESTION | OPTION | OPTION
    slow N      big N           hold NAME          recall         fail   crash   hang   limit N
    give NAME.ENDING TEXT           note TEXT          instructions
    tool NAME JSON                  tools              steerable      notice TEXT    compact
    background N TEXT
    subagent NAME TEXT

`ask` asks in a form where the client takes forms, else as a permission request; without options,
`ask QUESTION?` takes any text as an answer, and needs a form for that.
`instructions` repeats what this session was told of the agent itself, in prompts and as its system
prompt.
`give` puts a file for people into the folder that AGENT_BRIDGE_OUTGOING names.
`tool` calls a tool of the bridge and shows its result, `tools` lists them: over MCP if the session
names a server, else by the command on PATH.
`note` is what it says when it is asked after its turn what is worth keeping.
Words that are steered into a turn are read, and obeyed, between two lines; until then they are in
memory alone, as with real agents. `steerable` waits for some.
`background` leaves a command running that ends N seconds later. Then the agent begins a turn by
itself, in which it obeys TEXT if that is one of these lines, and says it if not. A client that
asks for messages of Claude's SDK is told what runs. A prompt that comes meanwhile joins such a
turn; words cannot be steered into it.
`notice` tells the client something besides the answer, `compact` that it goes on with a summary;
a client that does not take these gets them as text.
`subagent` starts a sub-agent, a session of its own that obeys the lines of TEXT, which ` && `
separates; one of them may be `subagent` again, and takes the rest. Those of one turn work at the
same time, the turn ends after them, and stopping the turn spares them, as with real agents: each
can be stopped alone. A client that knows no sub-agents sees a tool call and what happens inside.
Kinds of calls that `$HOME/.agent-bridge-demo/settings.json` lists under `allow` are not asked for.
`limit N` works once: the same line in the very next prompt finds the limit over, so that a turn
that waited can go on. `hang` answers nothing any more, not even cancel, until stdin closes.

With AGENT_BRIDGE_DEMO_FAULTS set (to `1`, or to a comma list of faults) also these lines:

    flood N     thoughts N  tools N     N text, thought or tool updates as fast as possible
    line N      stderr N    garbage N   N bytes without a newline, N bytes, N invalid lines
    requests N  children N              N asks at once, N orphans that sleep (half in new sessions)
    env         read PATH               say the environment, say what a file holds or the error
    chunk TEXT  tell NAME   late        a chunk per character, create a file, one update too late
    chatty N                            N turns by itself without an end, whatever it is told
    withdraw NAME                       ask, and take it back once the file is there
    refuse NAME     broken              fail with an `errorKind`; report a failure, and end the turn

and these faults of the whole process: `hang-X`, `fail-X` and `login-X`, which wants a login (X is
the last part of a method: initialize, new, load, resume, prompt, cancel, ...), `no-load` (neither
load nor resume), `no-resume`, `slow-exit` (deaf to the end of stdin and to SIGTERM),
`exit-at-start`, `system-prompt` (takes one with a new session and keeps it, as real agents do),
`mute-tell` (`tell` is the last thing it does that can be seen), `no-http` (takes tool servers on
stdio alone), `no-steering`, `detached` (turns do not wait for their sub-agents), `only-v2` (speaks
version 2 of the protocol, which this bridge does not), `pulls` (takes no words into its turns, but
asks for those that wait after each line, as qwen does).
"""

# pathlib would be a quarter of the start-up time.
# ruff: noqa: PTH103, PTH110, PTH111, PTH112, PTH116, PTH117, PTH118, PTH120, PTH123, PTH208

from __future__ import annotations

import json
import os
import re
import select
import signal
import sys
import textwrap
import threading
import time
from contextlib import suppress
from itertools import count, cycle, groupby, islice

TYPE_CHECKING = False  # the name is enough for mypy; importing typing costs 5 ms
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    Json = dict[str, Any]
    Options = list[dict[str, str]]
    Method = Callable[[Json], Json | "DemoTurn" | None]

VERSION = "1.0.0"
FAULTS = set(os.environ.get("AGENT_BRIDGE_DEMO_FAULTS", "").split(",")) - {""}
HISTORY = os.path.join(os.path.expanduser("~"), ".agent-bridge-demo")
SETTINGS = os.path.join(HISTORY, "settings.json")
INVALID_REQUEST, NO_SUCH_METHOD, INVALID_PARAMS, INTERNAL = -32600, -32601, -32602, -32603
NOT_FOUND, LOGIN_NEEDED = -32002, -32000  # ACP's additions to the codes of JSON-RPC
MODES = [
    {"id": "ask", "name": "Ask", "description": "Asks before it writes or runs anything"},
    {"id": "free", "name": "Free", "description": "Writes and runs without asking"},
]
MODELS = [{"value": "parrot", "name": "Parrot"}, {"value": "macaw", "name": "Macaw"}]
PERMISSIONS = [
    {"optionId": "allow", "name": "Allow once", "kind": "allow_once"},
    {"optionId": "allow-always", "name": "Allow always", "kind": "allow_always"},
    {"optionId": "reject", "name": "Reject", "kind": "reject_once"},
]
CONTEXT_TOKENS = 200_000  # a usual size, so that usage looks familiar
CHUNK = 32  # characters; a few words, as models stream them
OUTPUT_LIMIT = 64 * 1024  # bytes kept of a command's output: more than people read
POLL_SECONDS = 0.02  # looks instant, costs nothing
LEAVE_SECONDS = 1.0  # a process starts in a hundredth of it
TOOL_SECONDS = 120.0  # without a sign of life: the bridge sends one every 15 seconds
MCP_VERSION = "2025-06-18"
TOOL_COMMAND = "agent-bridge-tool"
STOP_LOOKS = 50  # a second: even a busy machine stops a process by then
LATE_SECONDS = 0.05  # surely after the answer was read
SLOW_WORDS = ("One", "word", "a", "second,", "and", "no", "hurry.")
FILLER = ("The quick brown fox jumps over the lazy dog. " * 23)[:1000]
WORTH_KEEPING = "[The bridge asks;"  # how the question begins what to remember of a turn
MARKER = re.compile(r"<!--.*-->")  # a line that no one sees
MENTION = re.compile(r"^((<@[^<>]+>|@[\w.\-\[\]]+)[,:]?(\s+|$))+")
TEXT, NAME, NUMBER, NOTHING = r".+", r"\S+", r"\d{1,12}", ""  # shapes of an argument
COMMANDS = {
    **dict.fromkeys(("say", "plan", "run", "note"), TEXT),
    **dict.fromkeys(("slow", "big", "limit"), NUMBER),
    **dict.fromkeys(("recall", "instructions", "tools", "fail", "crash", "hang"), NOTHING),
    **dict.fromkeys(("steerable", "compact"), NOTHING),
    "background": rf"{NUMBER}\s+.+",
    "notice": TEXT,
    "subagent": r"\S+\s+.+",
    "tool": r"\S+(\s+\{.*\})?",
    "write": r"\S+\s+.+",
    "ask": r"[^|]+(\|[^|]+)+|[^|]+\?",
    "hold": NAME,
    "give": r"[^\s/]+\.\w+\s+.+",
}
FAULT_COMMANDS = {
    **dict.fromkeys(("flood", "thoughts", "line", "stderr", "garbage"), NUMBER),
    "tools": rf"|{NUMBER}",
    **dict.fromkeys(("requests", "children", "chatty"), NUMBER),
    **dict.fromkeys(("env", "late"), NOTHING),
    **dict.fromkeys(("read", "chunk"), TEXT),
    **dict.fromkeys(("tell", "withdraw", "refuse"), NAME),
    "broken": NOTHING,
}


class WireError(Exception):
    """A JSON-RPC error that answers the request at hand."""

    def __init__(self, code: int, message: str, **data: object) -> None:
        super().__init__(message)
        self.body = {"code": code, "message": message, **({"data": data} if data else {})}


class CancelledError(Exception):
    """The client cancelled the turn."""


class Wire:
    """Stdout, shared by all threads, and the asks that wait for an answer."""

    def __init__(self) -> None:
        self.asks: dict[int, DemoTurn] = {}
        self.children: dict[str, DemoChild] = {}
        self.takes_children = False
        self.takes_forms = False
        self.takes: Json = {}
        self.muted = False
        self._lock = threading.Lock()
        self._ids = count(1)

    def write(self, data: bytes) -> None:
        """Write bytes as they are; do nothing once the client has gone."""
        try:
            with self._lock:
                while data and not self.muted:
                    data = data[os.write(1, data) :]
        except BrokenPipeError:
            os._exit(0)

    def send(self, **message: object) -> None:
        """Send one JSON-RPC message."""
        self.write(encode({"jsonrpc": "2.0", **message}))

    def update(self, session: str, kind: str, /, **fields: object) -> None:
        """Send one session/update."""
        params = {"sessionId": session, "update": {"sessionUpdate": kind, **fields}}
        self.send(method="session/update", params=params)

    def tell_sdk(self, session: DemoSession | ChildSession, subtype: str, **fields: object) -> None:
        """Send a message of Claude's SDK, if the client asked for it."""
        if subtype in session.emits:
            message = {"type": "system", "subtype": subtype, **fields}
            params = {"sessionId": session.name, "message": message}
            self.send(method="_claude/sdkMessage", params=params)

    def ask(self, session: str, call: Json, options: Options, turn: DemoTurn | None = None) -> None:
        """Send a permission request that can be shown alone; a turn may wait for the answer."""
        params = {"sessionId": session, "toolCall": call, "options": options}
        self.request("session/request_permission", params, turn)

    def request(self, method: str, params: Json, turn: DemoTurn | None = None) -> int:
        """Send a request and return its id; a turn may wait for the answer."""
        request = next(self._ids)
        if turn:
            self.asks[request] = turn
        self.send(id=request, method=method, params=params)
        return request

    def withdraw(self, request: int) -> None:
        """Take a request back that is not answered yet."""
        if self.asks.pop(request, None):
            self.send(method="$/cancel_request", params={"requestId": request})


class DemoSession:
    """A conversation: its workspace, its settings, and its history on disk."""

    def __init__(self, name: str, cwd: str, servers: list[Json]) -> None:
        self.name, self.cwd, self.servers = name, cwd, servers
        self.mode, self.model = MODES[0]["id"], MODELS[0]["value"]
        self.allowed: set[str] = set()
        self.turn: DemoTurn | None = None
        self.pulls = True
        self.emits: set[str] = set()
        self.tasks: dict[str, str] = {}
        self.records = read_history(name)
        os.makedirs(HISTORY, mode=0o700, exist_ok=True)
        self._file = open(history_path(name), "a+b", buffering=0)  # noqa: SIM115 - lives as we do
        size = self._file.tell()
        if size and os.pread(self._file.fileno(), 1, size - 1) != b"\n":
            self._file.write(b"\n")  # a kill tore the last line
        self.remember("session", cwd)

    def remember(self, role: str, text: str) -> None:
        """Write a record to disk, where it survives SIGKILL."""
        self.records.append({"role": role, "text": text})
        self._file.write(encode(self.records[-1]))

    def settings(self) -> Json:
        """Return modes and options as every answer that opens a session carries them."""
        model = {"id": "model", "name": "Model", "category": "model", "type": "select"}
        return {
            "modes": {"currentModeId": self.mode, "availableModes": MODES},
            "configOptions": [{**model, "currentValue": self.model, "options": MODELS}],
        }


class ChildSession:
    """The session of a sub-agent: in memory alone, below another one."""

    def __init__(self, above: DemoSession | ChildSession) -> None:
        self.name: str = new_id("child")
        self.cwd: str = above.cwd
        self.servers: list[Json] = above.servers
        self.mode: str = above.mode
        self.allowed: set[str] = set()
        self.turn: DemoTurn | None = None
        self.pulls = False
        self.emits: set[str] = set()
        self.tasks: dict[str, str] = {}
        self.records: list[dict[str, str]] = []

    def remember(self, role: str, text: str) -> None:
        """Keep a record."""
        self.records.append({"role": role, "text": text})


class Tools:
    """The bridge's tools, by the command on PATH."""

    def __init__(self) -> None:
        self.child: Any = None

    def start(self, argv: list[str], **more: Any) -> Any:
        """Start a program that `close` ends."""
        from subprocess import PIPE, Popen  # noqa: PLC0415 - 6 ms of start-up

        self.child = Popen(argv, stdin=PIPE, stdout=PIPE, **more)
        return self.child

    def close(self) -> None:
        """End what runs."""
        if self.child:
            self.child.kill()
            self.child.communicate()

    def list(self) -> str:
        """Describe the tools, one per line."""
        return self._run()[1]

    def call(self, name: str, arguments: Json) -> tuple[bool, str]:
        """Call a tool; return whether it failed, and what it said."""
        return self._run(name, json.dumps(arguments))

    def _run(self, *words: str) -> tuple[bool, str]:
        output = self.start([TOOL_COMMAND, *words], stderr=-2).communicate()[0]
        return bool(self.child.returncode), output.decode(errors="replace").strip()


class McpTools(Tools):
    """The bridge's tools, over MCP."""

    def __init__(self, server: Json) -> None:
        super().__init__()
        self.server = server
        self.sock: Any = None

    def close(self) -> None:
        """End what runs."""
        super().close()
        if self.sock:
            with suppress(OSError):
                self.sock.shutdown(2)  # closing alone would wait for the thread that reads

    def list(self) -> str:
        """Describe the tools, one per line."""
        tools = self._ask("tools/list", {})["tools"]
        return "\n".join(f"{each['name']}: {each['description']}" for each in tools)

    def call(self, name: str, arguments: Json) -> tuple[bool, str]:
        """Call a tool; return whether it failed, and what it said."""
        result = self._ask("tools/call", {"name": name, "arguments": arguments})
        texts = [block.get("text", "") for block in result["content"]]
        return bool(result.get("isError")), "\n".join(texts)

    def _ask(self, method: str, params: Json) -> Json:
        hello = {"protocolVersion": MCP_VERSION, "capabilities": {}}
        hello["clientInfo"] = {"name": "demo", "version": VERSION}
        exchange = self._post if self.server.get("url") else self._tell
        exchange({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
        exchange({"jsonrpc": "2.0", "method": "notifications/initialized"})
        answer = exchange({"jsonrpc": "2.0", "id": 2, "method": method, "params": params})
        if "error" in answer:
            raise ValueError(answer["error"].get("message"))
        result: Json = answer["result"]
        return result

    def _tell(self, message: Json) -> Json:
        """Send a message to a server on stdio; return its answer, if it is a request."""
        if not self.child:
            given = {each["name"]: each["value"] for each in self.server["env"]}
            argv = [self.server["command"], *self.server["args"]]
            self.start(argv, env={**os.environ, **given})
        self.child.stdin.write(encode(message))
        self.child.stdin.flush()
        for line in self.child.stdout if "id" in message else ():
            if (answer := json.loads(line)).get("id") == message["id"]:
                return dict(answer)
        return {}

    def _post(self, message: Json) -> Json:
        """Send a message to a server over HTTP; return its answer, if it is a request."""
        from http.client import HTTPConnection  # noqa: PLC0415 - 20 ms of start-up

        host, _, path = self.server["url"].partition("://")[2].partition("/")
        headers = {each["name"]: each["value"] for each in self.server["headers"]}
        headers["Accept"] = "application/json, text/event-stream"
        headers["Content-Type"] = "application/json"
        http = HTTPConnection(host, timeout=TOOL_SECONDS)
        http.connect()
        self.sock = http.sock
        http.request("POST", f"/{path}", encode(message), headers)
        reply = http.getresponse()
        if reply.status >= 300:
            raise OSError(f"status {reply.status}")
        lines = [line for line in reply if "id" in message]
        http.close()
        data = [line[5:] if line.startswith(b"data:") else line for line in lines]
        answers = [json.loads(line) for line in data if line.strip().startswith(b"{")]
        return next((dict(each) for each in answers if each.get("id") == message["id"]), {})


def open_tools(servers: list[Json]) -> Tools:
    """Return the tools of the first server, else those of the command."""
    return McpTools(servers[0]) if servers else Tools()


class DemoTurn:
    """One prompt and all that follows, on its own thread; `_do_x` runs the command `x`."""

    commands = COMMANDS
    is_own = False

    def __init__(self, wire: Wire, session: DemoSession | ChildSession, prompt: str) -> None:
        self.wire, self.session, self.prompt = wire, session, prompt
        self.children: list[DemoChild] = []
        self.before = list(session.records)
        self.child: int | None = None
        self.starting = threading.Lock()  # held until it is known which child there is
        self.late = False
        self.files: list[str] = []
        self._answer: Json | None = None
        self._written = 0
        self._cancelled = False
        self._woken = threading.Event()
        self._steered: list[str] = []
        self._steering = threading.Lock()  # words come in, or the turn takes no more
        self._is_over = False
        self.over = threading.Event()
        self.after: DemoTurn | None = None  # the turn that this one waits for
        if not self.is_own:
            session.remember("user", prompt)

    def cancel(self) -> None:
        """End the turn at its next check (called by the reader)."""
        self._cancelled = True
        self._woken.set()

    def settle(self, answer: Json) -> None:
        """Pass the client's answer to the open ask (called by the reader)."""
        self._answer = answer
        self._woken.set()

    def steer(self, words: str) -> bool:
        """Take words into the turn (called by the reader); False if it takes no more."""
        with self._steering:
            takes = not self._is_over and not self.is_own
            if takes:
                self._steered.append(words)
            return takes

    def run(self, request: object) -> None:
        """Obey the prompt and answer the request, whatever happens."""
        if self.after:
            self.after.over.wait()
        self.wire.tell_sdk(self.session, "session_state_changed", state="running")
        reply: Json = {"error": {"code": INTERNAL, "message": "The demo agent broke."}}
        try:
            self._obey()
            self.check()
            reply = {"result": {"stopReason": "end_turn", "usage": self._usage()}}
        except CancelledError:
            reply = {"result": {"stopReason": "cancelled", "usage": self._usage()}}
        except WireError as problem:
            reply = {"error": problem.body}
        finally:
            self._is_over = True
            used = sum(len(record["text"]) for record in self.session.records) // 4
            cost = {"amount": 0.0, "currency": "USD"}
            self.update("usage_update", used=used, size=CONTEXT_TOKENS, cost=cost)
            if self.session.turn is self:
                self.session.turn = None
            if request is not None:  # a turn that steering, or the agent, began answers no one
                self.wire.send(id=request, **reply)
            self.wire.tell_sdk(self.session, "session_state_changed", state="idle")
            self.over.set()
        if self.late:
            time.sleep(LATE_SECONDS)
            self.update("agent_message_chunk", content=text_block("Too late."))

    def _obey(self) -> None:
        if self.is_own:
            command = self._command(self.prompt)
            act, argument = command or (self.say, self.prompt)
            act(argument)
            return
        if self.prompt.startswith(WORTH_KEEPING):
            self.say("\n".join(f"- {note}" for note in self._notes()) or "nothing")
            return
        if not any(record["role"] == "user" for record in self.before):
            self.update("session_info_update", title=title_of(self.session.records))
        self._follow(self.prompt, self._read_steered)
        while not self._ends():
            self._read_steered()
        if "detached" not in FAULTS:
            self.wait_for_children()

    def _follow(self, prompt: str, between: Callable[[], None] = lambda: None) -> None:
        for words in list(filter(None, spoken(prompt))) or [[]]:
            found = [command for line in words if (command := self._command(line))]
            for act, argument in found or [(self._chat, "\n".join(words))]:
                self.check()
                try:
                    act(argument)
                except (OSError, ValueError) as problem:
                    self.say(f"That failed: {problem}")
                between()

    def _read_steered(self) -> None:
        """Obey the words that were steered in, or that wait for the turn."""
        if "pulls" in FAULTS and self.session.pulls:
            self._pull()
        while self._steered:
            self.check()
            words = self._steered.pop(0)
            self.session.remember("user", words)
            self._follow(words)

    def _pull(self) -> None:
        """Ask for the words that wait; one refusal is enough for the whole session."""
        answer = self.request("craft/drainMidTurnQueue", {"sessionId": self.session.name})
        self.session.pulls = "messages" in answer
        self._steered += answer.get("messages", ())

    def _ends(self) -> bool:
        """Take no more words if all were read; what is taken is read."""
        with self._steering:
            self._is_over = not self._steered
            return self._is_over

    def _notes(self) -> list[str]:
        """List what the last turn was told to note."""
        asked = [record["text"] for record in self.before if record["role"] == "user"]
        lines = (line for text in asked[-1:] for words in spoken(text) for line in words)
        return [line.split(None, 1)[1] for line in lines if line.lower().startswith("note ")]

    def _command(self, line: str) -> tuple[Callable[[str], None], str] | None:
        word, argument = (*line.split(None, 1), "")[:2]
        shape = self.commands.get(word.lower())
        if shape is None or not re.fullmatch(shape, argument):
            return None
        return getattr(self, f"_do_{word.lower()}"), argument

    def _usage(self) -> Json:
        read, written = len(self.prompt) // 4, self._written // 4
        return {"inputTokens": read, "outputTokens": written, "totalTokens": read + written}

    def check(self) -> None:
        """Raise CancelledError if the turn was cancelled."""
        if self._cancelled:
            raise CancelledError

    def pause(self, seconds: float) -> None:
        """Wait, but not longer than until the turn is cancelled."""
        self._woken.wait(seconds)
        self.check()

    def update(self, kind: str, /, **fields: object) -> None:
        """Send one session/update."""
        self.wire.update(self.session.name, kind, **fields)

    def say(self, text: str) -> None:
        """Say a text, a few words at a time."""
        self.stream(text[start : start + CHUNK] for start in range(0, len(text), CHUNK))

    def stream(self, pieces: Iterable[str]) -> None:
        """Send pieces of text as they come, as a paragraph of their own."""
        lead = "\n\n" if self._written else ""
        for piece in pieces:
            self.check()
            self._written += len(lead + piece)
            self.session.remember("agent", lead + piece)
            self.update("agent_message_chunk", content=text_block(lead + piece))
            lead = ""

    def think(self, text: str) -> None:
        """Send a thought; thoughts are not remembered."""
        self.update("agent_thought_chunk", content=text_block(text))

    def ask(self, call: Json, options: Options) -> str:
        """Ask the client and wait for the chosen option id; empty if it could not answer."""
        params = {"sessionId": self.session.name, "toolCall": call, "options": options}
        outcome = self.request("session/request_permission", params).get("outcome", {})
        if outcome.get("outcome") == "cancelled":
            raise CancelledError
        return str(outcome.get("optionId", ""))

    def request(self, method: str, params: Json) -> Json:
        """Ask the client something and wait for the result; empty if it has none."""
        self._answer = None
        request = self.wire.request(method, params, self)
        try:
            while self._answer is None:
                self._woken.wait()
                self._woken.clear()
                self.check()
        finally:
            self.wire.withdraw(request)
        return self._answer.get("result") or {}

    def wait_for_children(self) -> None:
        """Wait for the sub-agents that were started."""
        while any(child.works for child in self.children):
            self.pause(POLL_SECONDS)

    def use_tool(self, call: Json, work: Callable[[], Json], *, asks: bool = True) -> None:
        """Show a tool call, ask for it if needed, run it, and report how it ended."""
        call = {"toolCallId": new_id("call"), "status": "pending", **call}
        end: Json = {"status": "failed"}
        self.update("tool_call", **call)
        try:
            if not asks or self._permitted(call):
                self.update("tool_call_update", toolCallId=call["toolCallId"], status="in_progress")
                end = work()
            else:
                end["rawOutput"] = f"{call['title']}: not done, because it was rejected."
        except OSError as problem:
            end["rawOutput"] = f"{call['title']}: failed, because {problem}."
        finally:
            self.update("tool_call_update", toolCallId=call["toolCallId"], **end)
        self.say(end["rawOutput"])

    def _permitted(self, call: Json) -> bool:
        if self.session.mode == "free" or call["kind"] in {*self.session.allowed, *always()}:
            return True
        choice = self.ask(call, PERMISSIONS)
        if choice == "allow-always":
            self.session.allowed.add(call["kind"])
        return choice in ("allow", "allow-always")

    def inside(self, name: str) -> str:
        """Return the path of a file in the workspace; raise PermissionError for any other."""
        root = os.path.realpath(self.session.cwd)
        path = os.path.realpath(os.path.join(root, name))
        if path == root or os.path.commonpath([root, path]) != root:
            raise PermissionError(f"{name} is not inside my workspace")
        return path

    def _chat(self, words: str) -> None:
        self.think("This is not one of my commands, so I repeat it.")
        said = f"You said: {words[:2000]}" if words else "Your message was empty."
        came = f"\n\nWith it came: {', '.join(self.files)}." if self.files else ""
        self.say(f"Hello, I am the demo agent, a small script without a model. {said}{came}")

    def _do_say(self, text: str) -> None:
        self.say(text)

    def _do_plan(self, text: str) -> None:
        steps = [step.strip() for step in text.split(";") if step.strip()]

        def show(states: list[str]) -> None:
            self.check()
            pairs = zip(steps, states, strict=False)
            entries = [{"content": c, "priority": "medium", "status": s} for c, s in pairs]
            self.update("plan", entries=entries)

        show(["pending"] * len(steps))
        for done in range(len(steps) + 1):
            show(["completed"] * done + ["in_progress"] + ["pending"] * len(steps))
        self.say(f"Done: {'; '.join(steps)}.")

    def _do_write(self, argument: str) -> None:
        name, text = argument.split(None, 1)
        path, old, new = self.inside(name), None, text + "\n"
        with suppress(FileNotFoundError), open(path, encoding="utf-8", errors="replace") as file:
            old = file.read()

        def work() -> Json:
            path = self.inside(name)  # again: much may have changed while a person was asked
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(new)
            return {"status": "completed", "rawOutput": f"Wrote {name}."}

        diff = {"type": "diff", "path": path, "oldText": old, "newText": new}
        call = {"title": f"Write {name}", "kind": "edit", "locations": [{"path": path}]}
        raw = {"file_path": path, "content": new}
        self.use_tool({**call, "content": [diff], "rawInput": raw}, work)

    def _do_give(self, argument: str) -> None:
        name, text = argument.split(None, 1)
        folder = os.environ.get("AGENT_BRIDGE_OUTGOING")
        if not folder:
            self.say("There is no folder for files for people.")
            return
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text + "\n")
        self.say(f"Here is {name}.")

    def _do_run(self, line: str) -> None:
        def work() -> Json:
            status, output = self._shell(line)
            return {
                "status": "failed" if status else "completed",
                "content": [{"type": "content", "content": text_block(output)}],
                "rawOutput": f"`{line}` ended with status {status}.\n\n{quoted(output)}".rstrip(),
            }

        raw = {"command": line, "cwd": self.session.cwd}
        self.use_tool({"title": f"Run `{line}`", "kind": "execute", "rawInput": raw}, work)

    def _shell(self, line: str) -> tuple[int, str]:
        from subprocess import DEVNULL, PIPE, STDOUT, Popen  # noqa: PLC0415 - 6 ms of start-up

        shell, folder, output = ["sh", "-c", line], self.session.cwd, b""
        with self.starting:
            child = Popen(shell, cwd=folder, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT)
            self.child = child.pid
        with child:
            assert child.stdout
            try:
                while True:
                    ended = child.poll() is not None  # before reading, so that nothing is missed
                    ready = select.select([child.stdout], [], [], 0)[0]
                    data = os.read(child.stdout.fileno(), OUTPUT_LIMIT) if ready else b""
                    output = (output + data)[:OUTPUT_LIMIT]
                    if ended and not data:
                        return child.returncode, output.decode(errors="replace")
                    self.pause(0 if data else POLL_SECONDS)
            finally:
                self.child = None
                if child.poll() is None:
                    kill_family(child.pid)

    def _do_background(self, argument: str) -> None:
        seconds, text = argument.split(None, 1)
        line = f"sleep {seconds}"

        def work() -> Json:
            from subprocess import DEVNULL, Popen  # noqa: PLC0415 - 6 ms of start-up

            child = Popen(["sh", "-c", line], stdin=DEVNULL, stdout=DEVNULL, start_new_session=True)
            task, session = new_id("task"), self.session
            session.tasks[task] = line
            self._tell_tasks()

            def wait() -> None:
                ended = child.wait()
                del session.tasks[task]
                self._tell_tasks()
                if ended == 0:  # else it was killed
                    self.wake(text)

            threading.Thread(target=wait, daemon=True).start()
            return {"status": "completed", "rawOutput": f"`{line}` runs in the background."}

        raw = {"command": line, "run_in_background": True}
        self.use_tool({"title": f"Run `{line}`", "kind": "execute", "rawInput": raw}, work)

    def _tell_tasks(self) -> None:
        tasks = [
            {"task_id": task, "task_type": "local_bash", "description": line}
            for task, line in self.session.tasks.items()
        ]
        self.wire.tell_sdk(self.session, "background_tasks_changed", tasks=tasks)

    def wake(self, text: str) -> None:
        """Begin a turn without a prompt, once no other runs, and follow it to its end."""
        own = type(self).of_its_own(self.wire, self.session, text)
        while (running := self.session.turn) is not None:
            running.over.wait()
        self.session.turn = own
        own.run(None)

    @classmethod
    def of_its_own(cls, wire: Wire, session: DemoSession | ChildSession, text: str) -> DemoTurn:
        """Make a turn that no prompt asks for."""
        own = type("Own", (cls,), {"is_own": True})
        turn: DemoTurn = own(wire, session, text)
        return turn

    def _do_ask(self, line: str) -> None:
        question, *names = (part.strip() for part in line.split("|"))
        if not names:
            words = self._form(question, minLength=1) if self.wire.takes_forms else None
            self.say(f"You said {words}." if words else "Nothing was said.")
            return
        choices = [{"const": name, "title": name} for name in names]
        forms = self.wire.takes_forms
        chosen = self._form(question, oneOf=choices) if forms else self._choice(question, names)
        self.say(f"You chose {chosen}." if chosen in names else "Nothing was chosen.")

    def _form(self, question: str, **shape: object) -> object:
        schema = {
            "type": "object",
            "properties": {"answer": {"type": "string", **shape}},
            "required": ["answer"],
        }
        params = {"sessionId": self.session.name, "mode": "form", "message": question}
        result = self.request("elicitation/create", {**params, "requestedSchema": schema})
        if result.get("action") == "cancel":
            raise CancelledError
        return (result.get("content") or {}).get("answer")

    def _choice(self, question: str, names: list[str]) -> str | None:
        ids = {f"option-{number}": name for number, name in enumerate(names, 1)}
        options = [{"optionId": key, "name": ids[key], "kind": "allow_once"} for key in ids]
        raw = {"question": question, "options": names}
        call = {"toolCallId": new_id("call"), "title": question, "kind": "other", "rawInput": raw}
        return ids.get(self.ask({**call, "status": "pending"}, options))

    def _do_tools(self, _: str) -> None:
        self.say(self._reach_bridge(lambda tools: tools.list()) or "I have no tools.")

    def _do_tool(self, argument: str) -> None:
        name, text = (*argument.split(None, 1), "{}")[:2]
        given = json.loads(text)

        def work() -> Json:
            failed, output = self._reach_bridge(lambda tools: tools.call(name, given))
            content = [{"type": "content", "content": text_block(output)}]
            status = "failed" if failed else "completed"
            return {"status": status, "content": content, "rawOutput": output}

        call = {"title": f"Tool {name}", "kind": "other", "rawInput": given}
        self.use_tool(call, work, asks=False)

    def _reach_bridge(self, work: Callable[[Tools], Any]) -> Any:
        """Do something with the bridge's tools, but not longer than until the turn is cancelled."""
        tools, done = open_tools(self.session.servers), []

        def reach() -> None:
            try:
                done.append(work(tools))
            except (OSError, ValueError, KeyError) as problem:
                done.append(problem)

        working = threading.Thread(target=reach, daemon=True)
        working.start()
        try:
            while working.is_alive():
                self.pause(POLL_SECONDS)
        finally:
            tools.close()
        if isinstance(done[0], Exception):
            raise OSError(f"the bridge did not answer ({done[0]})")
        return done[0]

    def _do_slow(self, seconds: str) -> None:
        def words() -> Iterator[str]:
            for word in islice(cycle(SLOW_WORDS), int(seconds)):
                yield f"{word} "
                self.pause(1)

        self.stream(words())

    def _do_big(self, size: str) -> None:
        self.stream(FILLER[: int(size) - start] for start in range(0, int(size), len(FILLER)))

    def _do_hold(self, name: str) -> None:
        path = self.inside(name)
        self.think(f"Waiting for {name}.")
        while not os.path.exists(path):
            self.pause(POLL_SECONDS)
        self.say(f"{name} is here.")

    def _do_recall(self, _: str) -> None:
        prompts = [record["text"] for record in self.before if record["role"] == "user"]
        told = [line for prompt in prompts for words in spoken(prompt) for line in words]
        self.say("\n- ".join(["You told me:" if told else "You told me nothing yet.", *told]))

    def _do_instructions(self, _: str) -> None:
        records = self.session.records
        prompts = [record["text"] for record in records if record["role"] == "user"]
        told = [block for prompt in prompts for block in instructed(prompt)]
        system = [record["text"] for record in records if record["role"] == "system"][-1:]
        self.say("\n\n".join([*system, *told]) or "I have no instructions.")

    def _do_steerable(self, _: str) -> None:
        self.think("Waiting for words.")
        while not self._steered:
            self.pause(POLL_SECONDS)

    def _do_notice(self, text: str) -> None:
        if "notices" in self.wire.takes:
            self.update("notice", severity="warning", title=text)
        else:
            self.say(f"Notice: {text}")

    def _do_compact(self, _: str) -> None:
        if "compaction" not in self.wire.takes:
            self.say("Compacted.")
            return
        compaction = new_id("compaction")
        for status in ("in_progress", "completed", "completed"):  # real agents repeat the last one
            self.update("compaction_update", compactionId=compaction, status=status)

    def _do_subagent(self, argument: str) -> None:
        name, task = argument.split(None, 1)
        child = DemoChild(self, name, task)
        self.children.append(child)
        threading.Thread(target=child.work, daemon=True).start()

    def _do_limit(self, seconds: str) -> None:
        earlier = [record for record in self.before if record["role"] != "session"]
        if earlier[-1:] == [{"role": "limit", "text": seconds}]:
            self.say("The limit is over.")
            return
        self.session.remember("limit", seconds)
        reset = {"retryAfterSeconds": int(seconds), "resetsAt": int(time.time()) + int(seconds)}
        message = f"Usage limit reached; it resets in {seconds} seconds."
        raise WireError(INTERNAL, message, errorKind="rate_limit", **reset)

    def _do_fail(self, _: str) -> None:
        raise WireError(INTERNAL, "The demo agent failed, as it was told to.")

    def _do_crash(self, _: str) -> None:
        os._exit(70)

    def _do_note(self, text: str) -> None:
        self.say(f"Noted: {text}")

    def _do_hang(self, _: str) -> None:
        self.think("Hanging, as I was told to.")
        self.wire.muted = True
        threading.Event().wait()


class DemoChild(DemoTurn):
    """A sub-agent, on its own thread: its work is in a session below the one that started it."""

    def __init__(self, above: DemoTurn, name: str, task: str) -> None:
        super().__init__(above.wire, ChildSession(above.session), task)
        self.above, self.name, self.works = above, name, True
        if self.wire.takes_children:
            self.wire.children[self.session.name] = self
            known = {"above": above.session.name, "name": self.session.name, "title": name}
            root_of(self).remember("subagent", json.dumps(known))
            self.report("running", title=name, description="demo", capabilities={"cancel": {}})
            self._message(self.above.session.name, self.session.name, task)
        else:
            call = {"toolCallId": self.session.name, "title": f"Sub-agent {name}"}
            above.update("tool_call", **call, kind="other", status="in_progress")

    def work(self) -> None:
        """Obey the task and tell how it ended, whatever happens."""
        end = "error"
        try:
            for line in steps_of(self.prompt):
                self._follow(line)
            self.wait_for_children()
            end = "end_turn"
        except CancelledError:
            end = "cancelled"
        finally:
            said = [each["text"] for each in self.session.records if each["role"] == "agent"]
            self._message(self.session.name, self.above.session.name, "".join(said[-1:]))
            if self.wire.takes_children:
                self.report("idle", end, capabilities={"cancel": None})
            else:
                status = "completed" if end == "end_turn" else "failed"
                self.above.update("tool_call_update", toolCallId=self.session.name, status=status)
            self.works = False

    def report(self, state: str, reason: str = "", **fields: object) -> None:
        """Tell the session above how far it is."""
        now = {"state": state, **({"stopReason": reason} if reason else {})}
        self.above.update("subagent_update", sessionId=self.session.name, state=now, **fields)

    def update(self, kind: str, /, **fields: object) -> None:
        """Send one session/update: in its own session, or as what happens inside a call."""
        if self.wire.takes_children:
            super().update(kind, **fields)
        else:
            inside = {"parentToolCallId": self.session.name}
            self.above.update(kind, **{"_meta": inside, **fields})

    def request(self, method: str, params: Json) -> Json:
        """Ask the client something, and tell that it waits."""
        if not self.wire.takes_children:
            return super().request(method, {**params, "sessionId": root_of(self).name})
        self.report("requires_action")
        try:
            return super().request(method, params)
        finally:
            self.report("running")

    def _message(self, teller: str, told: str, words: str) -> None:
        if self.wire.takes_children and words:
            both = {"senderSessionId": teller, "recipientSessionId": told}
            name = new_id("message")
            content = [text_block(words)]
            self.above.update("session_message", messageId=name, **both, content=content)


class FaultyTurn(DemoTurn):
    """A turn that can also misbehave, for tests of programs that drive an agent."""

    commands = COMMANDS | FAULT_COMMANDS

    def _burst(self, number: str, update: Json) -> None:
        params = {"sessionId": self.session.name, "update": update}
        line = encode({"jsonrpc": "2.0", "method": "session/update", "params": params})
        for start in range(0, int(number), 500):
            self.check()
            numbers = range(start, min(start + 500, int(number)))
            self.wire.write(b"".join(line.replace(b"%d", b"%08d" % each) for each in numbers))

    def _do_flood(self, number: str, kind: str = "agent_message_chunk") -> None:
        content = text_block(f"%d {FILLER[:50]}\n")
        self._burst(number, {"sessionUpdate": kind, "content": content})

    def _do_thoughts(self, number: str) -> None:
        self._do_flood(number, "agent_thought_chunk")

    def _do_tools(self, number: str) -> None:
        if not number:
            super()._do_tools(number)
            return
        call = {"toolCallId": f"{new_id('call')}-%d", "title": "Tool %d", "status": "completed"}
        self._burst(number, {"sessionUpdate": "tool_call", "kind": "other", **call})

    def _do_line(self, number: str) -> None:
        for start in range(0, int(number), 65536):
            self.wire.write(b"x" * min(65536, int(number) - start))

    def _do_stderr(self, number: str) -> None:
        for start in range(0, int(number), len(FILLER)):
            os.write(2, FILLER[: int(number) - start].encode())

    def _do_garbage(self, number: str) -> None:
        unknown = {"sessionId": self.session.name, "update": {"sessionUpdate": "no_such_kind"}}
        lines = [
            *(b"this is not JSON", b"", b"null", b'"text"', b"[1,2,3]", b"\xff\xfe\x80{}", b"{"),
            *(b'{"id":[1]}', b'{"jsonrpc":"2.0","id":987654321,"result":{}}', b'{"method":7}'),
            b'{"jsonrpc":"2.0","id":"no-such","error":{"code":1,"message":"unknown"}}',
            b'{"jsonrpc":"2.0","method":"no/such/notification","params":[]}',
            b'{"jsonrpc":"2.0","id":"q","method":"no/such/request","params":{}}',
            b'{"jsonrpc":"2.0","method":"session/update","params":{"update":7}}',
            encode({"jsonrpc": "2.0", "method": "session/update", "params": unknown}).strip(),
            *(b"[" * 100_000 + b"]" * 100_000, b'{"a":' * 100_000),
        ]
        for line in islice(cycle(lines), int(number)):
            self.check()
            self.wire.write(line + b"\n")

    def _do_requests(self, number: str) -> None:
        for each in range(int(number)):
            call = {"toolCallId": new_id("call"), "title": f"Request {each}", "kind": "other"}
            self.wire.ask(self.session.name, call, PERMISSIONS)

    def _do_children(self, number: str) -> None:
        from subprocess import run  # noqa: PLC0415 - 6 ms of start-up

        orphan = ["sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!"]
        sleepers = [
            run(orphan, capture_output=True, text=True, start_new_session=each % 2 == 1).stdout
            for each in range(int(number))
        ]
        self.say(f"Children: {' '.join(pid.strip() for pid in sleepers)}")

    def _do_env(self, _: str) -> None:
        self.say(json.dumps(dict(os.environ)))

    def _do_read(self, path: str) -> None:
        with open(os.path.join(self.session.cwd, path), "rb") as file:
            self.say(file.read(OUTPUT_LIMIT).decode(errors="replace"))

    def _do_chunk(self, text: str) -> None:
        self.stream(text)

    def _do_tell(self, name: str) -> None:
        self.wire.muted = "mute-tell" in FAULTS
        with open(self.inside(name), "w"):
            self.think(f"Told by {name}.")

    def _do_late(self, _: str) -> None:
        self.late = True

    def _do_refuse(self, kind: str) -> None:
        raise WireError(INTERNAL, "The demo agent refuses, as it was told to.", errorKind=kind)

    def _do_broken(self, _: str) -> None:
        status = {"codex": {"threadStatus": {"type": "systemError"}}}
        self.update("session_info_update", _meta=status)

    def _do_chatty(self, number: str) -> None:
        def chat() -> None:
            for each in range(int(number)):
                self.over.wait()
                self.wake(f"say chatter {each}")
                time.sleep(LATE_SECONDS)

        threading.Thread(target=chat, daemon=True).start()

    def _do_withdraw(self, name: str) -> None:
        call = {"toolCallId": new_id("call"), "title": f"Wait for {name}", "kind": "other"}
        params = {"sessionId": self.session.name, "toolCall": call, "options": PERMISSIONS}
        request = self.wire.request("session/request_permission", params, self)
        while not os.path.exists(self.inside(name)):
            self.pause(POLL_SECONDS)
        self.wire.withdraw(request)
        self.say("Never mind.")


class DemoAgent:
    """The methods of the protocol, in the order in which they come; `_on_x` answers method `x`."""

    def __init__(self) -> None:
        self.wire = Wire()
        self.sessions: dict[str, DemoSession] = {}
        unable = {"no-load": ("load", "resume"), "no-resume": ("resume",)}
        self.missing = {f"session/{name}" for fault in FAULTS for name in unable.get(fault, ())}

    def handle(self, message: Json) -> None:
        """Answer a request, handle a notification, or pass an answer to the turn that asked."""
        method, request = message.get("method"), message.get("id")
        if not isinstance(method, str):
            turn = self.wire.asks.pop(request, None) if isinstance(request, int) else None
            if turn:
                turn.settle(message)
        elif f"hang-{method.rpartition('/')[2]}" not in FAULTS:
            result = self._reply(method, message.get("params") or {})
            if isinstance(result, DemoTurn):
                threading.Thread(target=result.run, args=(request,), daemon=True).start()
            elif "id" in message:
                self.wire.send(id=request, **result)

    def _reply(self, method: str, params: Json) -> Json | DemoTurn:
        try:
            result = self._method(method)(params)
        except WireError as problem:
            return {"error": problem.body}
        except OSError as problem:
            return {"error": {"code": INTERNAL, "message": f"No history: {problem}"}}
        except (AttributeError, KeyError, TypeError, ValueError) as problem:
            return {"error": {"code": INVALID_PARAMS, "message": f"Invalid params: {problem!r}"}}
        return result if isinstance(result, DemoTurn) else {"result": result}

    def _method(self, name: str) -> Method:
        if f"fail-{name.rpartition('/')[2]}" in FAULTS:
            raise WireError(INTERNAL, f"{name} failed, as it was told to.")
        if f"login-{name.rpartition('/')[2]}" in FAULTS:
            raise WireError(LOGIN_NEEDED, "Authentication required")
        method: Method | None = getattr(self, f"_on_{name.replace('/', '_')}", None)
        if method is None or name in self.missing:
            raise WireError(NO_SUCH_METHOD, f"The demo agent has no method {name}.")
        return method

    def leave(self) -> None:
        """Kill running commands and exit without waiting for any turn."""
        for turn in [session.turn for session in self.sessions.values() if session.turn]:
            turn.starting.acquire(timeout=LEAVE_SECONDS)  # and never let go: nothing starts again
            if turn.child:
                kill_family(turn.child)
        for child in [each.child for each in self.wire.children.values() if each.child]:
            kill_family(child)
        os._exit(0)

    def _on_initialize(self, params: Json) -> Json:
        able = params.get("clientCapabilities") or {}
        self.wire.takes = able.get("session") or {}
        self.wire.takes_forms = (able.get("elicitation") or {}).get("form") is not None
        self.wire.takes_children = able.get("subagents") is not None
        offered = [n for n in ("list", "close", "resume") if f"session/{n}" not in self.missing]
        offered += ["systemPrompt"] * ("system-prompt" in FAULTS)
        self.missing |= {"_session/steering"} if "pulls" in FAULTS else set()
        steering = {"steering": {"supported": True}}
        return {
            **({} if FAULTS & {"no-steering", "pulls"} else {"_meta": steering}),
            "protocolVersion": 2 if "only-v2" in FAULTS else 1,
            "agentInfo": {"name": "demo", "title": "Demo agent (no model)", "version": VERSION},
            "authMethods": [],
            "agentCapabilities": {
                "loadSession": "session/load" not in self.missing,
                "promptCapabilities": {"image": True, "embeddedContext": True},
                "mcpCapabilities": {"http": "no-http" not in FAULTS, "sse": False},
                "sessionCapabilities": {name: {} for name in offered},
            },
        }

    def _on_session_new(self, params: Json) -> Json:
        session = self._open(new_id("demo"), params)
        if system := params.get("systemPrompt"):
            session.remember("system", "\n\n".join(block["text"] for block in system["content"]))
        return {"sessionId": session.name, **session.settings()}

    def _on_session_load(self, params: Json) -> Json:
        session = self._reopen(params)
        for record in session.records if self.wire.takes_children else ():
            if record["role"] == "subagent":
                self._replay_child(json.loads(record["text"]))
        for kind, text in replay(session.records):
            self.wire.update(session.name, kind, content=text_block(text))
        return session.settings()

    def _replay_child(self, known: Json) -> None:
        """Tell of a sub-agent that is over, but not how it ended: real agents forget that."""
        for state in ("running", "idle"):
            told = {"sessionId": known["name"], "title": known["title"], "state": {"state": state}}
            self.wire.update(known["above"], "subagent_update", **told)

    def _on_session_resume(self, params: Json) -> Json:
        return self._reopen(params).settings()

    def _on_session_list(self, params: Json) -> Json:
        files = os.listdir(HISTORY) if os.path.isdir(HISTORY) else []
        found = [session_info(name[:-6]) for name in files if name.endswith(".jsonl")]
        found.sort(key=lambda info: str(info["updatedAt"]), reverse=True)
        return {"sessions": [info for info in found if params.get("cwd") in (None, info["cwd"])]}

    def _on_session_close(self, params: Json) -> Json:
        self._on_session_cancel(params)
        del self.sessions[params["sessionId"]]
        return {}

    def _on_session_set_mode(self, params: Json) -> Json:
        session, mode = self._session(params), params["modeId"]
        if mode not in [known["id"] for known in MODES]:
            raise WireError(INVALID_PARAMS, f"There is no mode {mode!r}.")
        session.mode = mode
        self.wire.update(session.name, "current_mode_update", currentModeId=mode)
        return {}

    def _on_session_set_config_option(self, params: Json) -> Json:
        session, value = self._session(params), params["value"]
        if params["configId"] != "model" or value not in [known["value"] for known in MODELS]:
            raise WireError(INVALID_PARAMS, f"There is no {params['configId']!r} {value!r}.")
        session.model = value
        return {"configOptions": session.settings()["configOptions"]}

    def _on_session_prompt(self, params: Json) -> DemoTurn:
        session = self._session(params)
        own = session.turn if session.turn and session.turn.is_own else None
        words = text_of(params["prompt"])
        turn = (FaultyTurn if FAULTS else DemoTurn)(
            self.wire, session if own else self._idle(session), words
        )
        turn.after, session.turn = own, turn
        session.turn.files = [
            name_of(block) for block in params["prompt"] if block["type"] != "text"
        ]
        return session.turn

    def _on__session_steering(self, params: Json) -> Json | DemoTurn:
        if "no-steering" in FAULTS:
            raise WireError(NO_SUCH_METHOD, "The demo agent takes no words into its turns.")
        session, words = self._session(params), text_of(params["prompt"])
        idle = ((params.get("_meta") or {}).get("steering") or {}).get("idleBehavior", "start")
        if not words or idle not in ("start", "promptRequired"):
            raise WireError(INVALID_PARAMS, "Steering needs words and a known idleBehavior.")
        if session.turn and session.turn.steer(words):
            return {"outcome": "injected"}
        if idle == "promptRequired" or session.turn:
            return {"outcome": "promptRequired", "reason": "noRunningTurn"}
        turn = self._on_session_prompt(params)
        threading.Thread(target=turn.run, args=(None,), daemon=True).start()
        return {"outcome": "startedNewTurn"}

    def _on_session_cancel(self, params: Json) -> None:
        if child := self.wire.children.get(params["sessionId"]):
            child.cancel()
            return
        turn = self._session(params).turn
        if turn:
            turn.cancel()

    def _open(self, name: str, params: Json) -> DemoSession:
        if not os.path.isabs(params["cwd"]):
            raise WireError(INVALID_PARAMS, "cwd must be an absolute path.")
        system = params.get("systemPrompt")
        if system and ("system-prompt" not in FAULTS or system["mode"] != "append"):
            raise WireError(INVALID_PARAMS, "The demo agent cannot apply this systemPrompt.")
        session = DemoSession(name, params["cwd"], params.get("mcpServers") or [])
        meta = (params.get("_meta") or {}).get("claudeCode") or {}
        session.emits = {each["subtype"] for each in meta.get("emitRawSDKMessages") or ()}
        self.sessions[name] = session
        return session

    def _reopen(self, params: Json) -> DemoSession:
        name = params["sessionId"]
        if name in self.sessions:
            return self._idle(self.sessions[name])
        if not re.fullmatch(r"demo-[0-9a-f]+", name) or not os.path.exists(history_path(name)):
            raise WireError(NOT_FOUND, f"There is no session {name}.", sessionId=name)
        return self._open(name, params)

    def _session(self, params: Json) -> DemoSession:
        name = params["sessionId"]
        if name not in self.sessions:
            raise WireError(NOT_FOUND, f"Session {name} is not open.", sessionId=name)
        return self.sessions[name]

    def _idle(self, session: DemoSession) -> DemoSession:
        if session.turn:
            raise WireError(INVALID_REQUEST, "This session is busy: a prompt is still running.")
        return session


def encode(value: object) -> bytes:
    """Return one line of JSON."""
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def text_block(text: str) -> Json:
    """Return a text as a content block."""
    return {"type": "text", "text": text}


def steps_of(task: str) -> Iterator[str]:
    """Yield the lines of a sub-agent's task; one that starts another takes the rest."""
    while task:
        if task.lower().startswith("subagent "):
            line, task = task, ""
        else:
            line, _, task = task.partition(" && ")
        yield line


def root_of(turn: DemoTurn) -> DemoSession | ChildSession:
    """Return the session of the turn that started a sub-agent, or the one above it."""
    while isinstance(turn, DemoChild):
        turn = turn.above
    return turn.session


def text_of(blocks: list[Json]) -> str:
    """Return the text of content blocks."""
    return "\n".join(block["text"] for block in blocks if block["type"] == "text")


def quoted(output: str) -> str:
    """Format an output as Markdown: several lines become a code block."""
    output = output.strip("\n")
    if "\n" not in output:
        return output
    fence = "```"
    while fence in output:
        fence += "`"
    return f"{fence}\n{output}\n{fence}"


def name_of(block: Json) -> str:
    """Describe an attachment: its name and its kind."""
    address = (block.get("resource") or block).get("uri") or ""
    name = block.get("name") or address.rpartition("/")[2] or block.get("mimeType") or "unnamed"
    return f"{name} ({block['type']})"


def new_id(prefix: str) -> str:
    """Return an id that no other process will choose."""
    return f"{prefix}-{os.urandom(8).hex()}"


def outside_data(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines outside of blocks; one that never ends hides all that follows."""
    end = ""
    for line in lines:
        if end:
            end = "" if line == end else end
        elif line.startswith(("<data", "<instructions")):
            end = "</data>" if line.startswith("<data") else "</instructions>"
        else:
            yield line


def instructed(prompt: str) -> Iterator[str]:
    """Yield the text of each block of instructions in a prompt."""
    for block in re.split(r"^<instructions[^\n]*\n", prompt, flags=re.MULTILINE)[1:]:
        yield block.partition("\n</instructions>")[0]


def spoken(prompt: str) -> Iterator[list[str]]:
    """Yield the lines of each speaker, without the bridge's, others' data, quotes and mentions.

    Only a line feed ends a line: any other separator could forge the end of a data block.
    """
    lines = prompt.split("\n")
    words = outside_data(lines)
    if re.fullmatch(r"\[.*\bcontinuation\b.*\]", lines[0].strip(), re.IGNORECASE):
        words = outside_data(line[1:].removeprefix(" ") for line in words if line[:1] == ">")
    speaker: list[str] = []
    for line in map(str.strip, words):
        if line[:1] == "[" and line[-1:] == "]":
            yield speaker
            speaker = []
        elif line[:1] != ">" and (rest := MENTION.sub("", MARKER.sub("", line))):
            speaker.append(rest)
    yield speaker


def history_path(session: str) -> str:
    """Return the path of a session's history."""
    return os.path.join(HISTORY, f"{session}.jsonl")


def always() -> list[str]:
    """Return the kinds of calls that the settings allow without asking."""
    with suppress(OSError, ValueError, AttributeError), open(SETTINGS) as settings:
        return list(json.load(settings).get("allow", []))
    return []


def read_history(session: str) -> list[dict[str, str]]:
    """Read a session's history from disk, without lines that a kill tore."""
    records = []
    with suppress(FileNotFoundError), open(history_path(session), "rb") as lines:
        for line in lines:
            with suppress(ValueError):
                records.append(json.loads(line))
    return records


def replay(records: list[dict[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield update kind and text of what was said; the pieces of an answer as one."""
    for role, group in groupby(records, lambda record: record["role"]):
        texts = [record["text"] for record in group]
        if role == "agent":
            yield "agent_message_chunk", "".join(texts)
        elif role == "user":
            yield from (("user_message_chunk", text) for text in texts)


def session_info(session: str) -> Json:
    """Return the entry of a session for session/list."""
    records = read_history(session)
    folders = [record["text"] for record in records if record["role"] == "session"]
    changed = time.gmtime(os.stat(history_path(session)).st_mtime)
    return {
        "sessionId": session,
        "cwd": folders[-1] if folders else "/",
        "title": title_of(records),
        "updatedAt": time.strftime("%Y-%m-%dT%H:%M:%SZ", changed),
    }


def title_of(records: list[dict[str, str]]) -> str:
    """Return the first words of a conversation."""
    prompts = (record["text"] for record in records if record["role"] == "user")
    words = " ".join(line for words in spoken(next(prompts, "")) for line in words)
    return textwrap.shorten(words, 60, placeholder=" …") or "Demo"


def kill_family(pid: int) -> None:
    """Kill a command with all it started; it stays in our group, so that it also dies with us."""
    with suppress(OSError):
        os.kill(pid, signal.SIGSTOP)
        for _ in range(STOP_LOOKS):
            with open(f"/proc/{pid}/stat") as stat:
                if stat.read().rpartition(")")[2].split()[0] in "TtZX":
                    break  # from now on it starts nothing
            time.sleep(POLL_SECONDS)
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as children:
                for child in children.read().split():
                    kill_family(int(child))
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def main() -> None:
    """Serve one client on stdin and stdout until stdin closes."""
    if "--version" in sys.argv:
        print(f"agent-bridge-demo-agent {VERSION}")
        return
    if "exit-at-start" in FAULTS:
        sys.exit("The demo agent leaves at once, as it was told to.")
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if "slow-exit" in FAULTS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    agent = DemoAgent()
    for line in sys.stdin.buffer:
        with suppress(ValueError, RecursionError):
            message = json.loads(line)
            if isinstance(message, dict):
                agent.handle(message)
    while "slow-exit" in FAULTS:
        signal.pause()
    agent.leave()


if __name__ == "__main__":
    main()
