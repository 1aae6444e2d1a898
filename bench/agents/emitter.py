"""An agent that answers every prompt with as many updates of text as it was told, at full speed.

Run as `python emitter.py COUNT CORE`; no core is named as -1.
"""

from __future__ import annotations

import json
import os
import sys

TEXT = ("The parser now keeps the position of every token, so that errors name line and column. ")[
    :80
] + "Two tests that relied on the old way changed"[:40]
FRAMES_AT_ONCE = 256  # as many as fill the pipe once, so that writing costs next to nothing


def main() -> None:
    """Serve one client on stdin and stdout."""
    count, core = int(sys.argv[1]), int(sys.argv[2])
    if core >= 0:
        os.sched_setaffinity(0, {core})
    frame = _line(
        {
            "method": "session/update",
            "params": {
                "sessionId": "one",
                "update": {
                    "sessionUpdate": "agent_message_chunk",
                    "content": {"type": "text", "text": TEXT},
                },
            },
        }
    )
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if message.get("method") == "session/prompt":
            for _ in range(count // FRAMES_AT_ONCE):
                _write(frame * FRAMES_AT_ONCE)
            _write(frame * (count % FRAMES_AT_ONCE))
        if "id" in message:
            _write(_line({"id": message["id"], "result": _answer(message["method"])}))


def _answer(method: str) -> dict[str, object]:
    match method:
        case "initialize":
            return {"protocolVersion": 1, "agentCapabilities": {}}
        case "session/new":
            return {"sessionId": "one"}
        case "session/prompt":
            return {"stopReason": "end_turn"}
    return {}


def _line(message: dict[str, object]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode() + b"\n"


def _write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


if __name__ == "__main__":
    main()
