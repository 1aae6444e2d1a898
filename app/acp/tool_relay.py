"""Relays tool calls from an agent to the bridge: as an MCP server on stdio, or as a command.

It is one stdlib file that imports nothing of the package: a copy of it is in the folder of the
agent's endpoint and runs in the agent's isolation. As `tool_relay.py serve` it passes each line of
stdin to the bridge over the socket next to it, and writes the answers to stdout. As
`tool_relay.py call NAME --KEY VALUE` it calls one tool and prints the result; without a name it
lists the tools. Access to the socket is the right to use it, so there is no token.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Json = dict[str, Any]

SILENCE_SECONDS = 120.0
"""The bridge sends a sign of life every 15 seconds, however long a call takes."""
LINE_BYTES = 2 * 1024 * 1024
"""Twice the longest request that the bridge takes."""
INTERNAL = -32603
"""The JSON-RPC code of an error that is not the client's."""
USAGE = """Usage: agent-bridge-tool NAME --KEY VALUE ...
       agent-bridge-tool NAME JSON       the same, as one JSON object
       agent-bridge-tool NAME -          reads the JSON object from standard input
       agent-bridge-tool NAME --help     describes a tool
       agent-bridge-tool                 lists the tools
"""

_writing = threading.Lock()
_waiting: dict[object, SocketConnection] = {}
"""The connections on which answers are waited for, by the id of the request."""
_cancelled: set[object] = set()
"""Requests that the client cancelled; they get no answer."""
_version = ""


class SocketConnection(http.client.HTTPConnection):
    """A connection to the socket in the folder of this file."""

    def __init__(self) -> None:
        super().__init__("bridge.invalid", timeout=SILENCE_SECONDS)

    def connect(self) -> None:
        """Connect; the path of a socket has little room, so it is relative."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(SILENCE_SECONDS)
        self.sock.connect("tools")


def send(message: Json) -> Iterator[Json]:
    """Send one message to the bridge, and yield what it answers.

    Raises:
        OSError, http.client.HTTPException: the bridge does not answer.
    """
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    if _version:
        headers["MCP-Protocol-Version"] = _version
    bridge = _waiting[message.get("id")] = SocketConnection()
    try:
        bridge.request("POST", "/mcp", json.dumps(message).encode(), headers)
        answer = bridge.getresponse()
        if answer.getheader("Content-Type", "").startswith("text/event-stream"):
            for line in answer:
                if line.startswith(b"data:") and line[5:].strip():
                    yield json.loads(line[5:])
        elif body := answer.read():
            found = json.loads(body)
            if "jsonrpc" not in found:
                raise OSError(found.get("title", f"status {answer.status}"))
            yield {**found, "id": message.get("id")}
    finally:
        _waiting.pop(message.get("id"), None)
        bridge.close()


def cancel(request: object) -> None:
    """Stop to wait for the answer to a request: the bridge sees that its caller is gone."""
    bridge = _waiting.get(request)
    if bridge is not None and bridge.sock is not None:
        _cancelled.add(request)
        bridge.sock.shutdown(socket.SHUT_RDWR)


def serve() -> None:
    """Be an MCP server on stdin and stdout until stdin ends."""
    while line := sys.stdin.buffer.readline(LINE_BYTES):
        try:
            message = json.loads(line)
        except ValueError:
            continue
        if not isinstance(message, dict):
            continue
        if message.get("method") == "initialize":
            relay(message)  # what follows depends on its answer
        elif message.get("method") == "notifications/cancelled":
            cancel((message.get("params") or {}).get("requestId"))
        else:
            threading.Thread(target=relay, args=(message,), daemon=True).start()


def relay(message: Json) -> None:
    """Send a message to the bridge, and its answers to the client."""
    global _version
    try:
        for answer in send(message):
            if message.get("method") == "initialize":
                _version = (answer.get("result") or {}).get("protocolVersion", "")
            write(answer)
    except (OSError, ValueError, http.client.HTTPException) as problem:
        error = {"code": INTERNAL, "message": f"The bridge does not answer: {problem}"}
        if "id" in message and message["id"] not in _cancelled:
            write({"jsonrpc": "2.0", "id": message["id"], "error": error})


def write(message: Json) -> None:
    """Write one line to the client."""
    data = json.dumps(message, separators=(",", ":")).encode() + b"\n"
    with _writing:
        while data:
            data = data[os.write(1, data) :]


def ask(method: str, **params: object) -> Json:
    """Send a request and return its result; leave with its error."""
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    try:
        for answer in send(message):
            if "result" in answer:
                result: Json = answer["result"]
                return result
            if "error" in answer:
                sys.exit(f"agent-bridge-tool: {answer['error'].get('message')}")
    except (OSError, ValueError, http.client.HTTPException) as problem:
        sys.exit(f"agent-bridge-tool: the bridge does not answer: {problem}")
    sys.exit("agent-bridge-tool: the bridge did not answer")


def call(words: list[str]) -> int:
    """Call a tool, describe one, or list all."""
    if not words:
        for tool in ask("tools/list")["tools"]:
            print(f"{tool['name']}: {tool['description'].splitlines()[0]}")  # noqa: T201
        return 0
    name, *rest = words
    if name in ("-h", "--help"):
        print(USAGE, end="")  # noqa: T201
        return 0
    if rest == ["--help"]:
        print(json.dumps(describe(name), indent=2, ensure_ascii=False))  # noqa: T201
        return 0
    result = ask("tools/call", name=name, arguments=read_arguments(name, rest))
    for block in result.get("content", []):
        print(block.get("text", ""))  # noqa: T201
    return 1 if result.get("isError") else 0


def describe(name: str) -> Json:
    """Return what the bridge says about a tool; leave if there is no such tool."""
    found: list[Json] = [tool for tool in ask("tools/list")["tools"] if tool["name"] == name]
    if not found:
        sys.exit(f"agent-bridge-tool: there is no tool {name!r}")
    return found[0]


def read_arguments(name: str, words: list[str]) -> object:
    """Read the arguments of a call: by keys, or as JSON; leave if they cannot be read."""
    if words and words[0].startswith("--"):
        return read_keys(describe(name)["inputSchema"]["properties"], words)
    text = sys.stdin.read() if words == ["-"] else " ".join(words) or "{}"
    try:
        return json.loads(text)
    except ValueError as problem:
        sys.exit(f"agent-bridge-tool: the arguments are not JSON: {problem}\n{USAGE}")


def read_keys(known: Json, words: list[str]) -> Json:
    """Read `--KEY VALUE` and `--KEY=VALUE`; what is no text in the schema is JSON."""
    found: Json = {}
    rest = iter(words)
    for word in rest:
        key, has_value, value = word.removeprefix("--").partition("=")
        if not word.startswith("--"):
            sys.exit(f"agent-bridge-tool: a key was expected, not {word!r}\n{USAGE}")
        text = value if has_value else next(rest, "")
        found[key] = text
        if known.get(key, {}).get("type", "string") != "string":
            try:
                found[key] = json.loads(text)
            except ValueError:
                sys.exit(f"agent-bridge-tool: the value of --{key} is not JSON: {text!r}")
    return found


def main() -> int:
    """Serve stdio, or call one tool."""
    os.chdir(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - pathlib takes long to load
    if sys.argv[1:2] == ["call"]:
        return call(sys.argv[2:])
    serve()
    return 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)
