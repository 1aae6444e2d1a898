"""Acts as the LFS server of an agent's git-lfs: transfers large files from and to the bridge.

It is one stdlib file that imports nothing of the package: a copy of it is in the agent's
remote and runs in the agent's isolation, as the transfer program that git-lfs talks JSON to, a line
each way. For each file it opens the socket `lfs` there, names the file, and transfers its bytes.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from typing import Any

CHUNK_BYTES = 1024 * 1024
SOCKET = "lfs"


class LfsRefused(Exception):
    """The bridge says no, and why."""


def main() -> int:
    """Do what git-lfs wants, one file after another."""
    place = _temporary()
    os.chdir(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - see relay.py
    for line in sys.stdin:
        wanted = json.loads(line)
        if wanted["event"] == "init":
            _say({})
        elif wanted["event"] == "terminate":
            break
        else:
            _say({"event": "complete", "oid": wanted["oid"], **_outcome(wanted, place)})
    return 0


def _outcome(wanted: dict[str, Any], place: str) -> dict[str, Any]:
    try:
        if wanted["event"] == "upload":
            _put(wanted)
            return {}
        return {"path": _get(wanted, place)}
    except (OSError, LfsRefused) as error:
        return {"error": {"code": 1, "message": str(error) or type(error).__name__}}


def _get(wanted: dict[str, Any], place: str) -> str:
    with _request("get", wanted) as bridge, bridge.makefile("rb") as answer:
        _check_answer(answer.readline(), "ok")
        handle, path = tempfile.mkstemp(dir=place)
        left = wanted["size"]
        with os.fdopen(handle, "wb") as file:
            while left and (data := answer.read(min(CHUNK_BYTES, left))):
                file.write(data)
                left -= len(data)
    if left:
        os.unlink(path)  # noqa: PTH108 - pathlib takes long to load
        raise LfsRefused("The bridge closed the connection in the middle of a file.")
    return path


def _put(wanted: dict[str, Any]) -> None:
    with _request("put", wanted) as bridge, bridge.makefile("rb") as answer:
        if _check_answer(answer.readline(), "have", "send") == "have":
            return
        with open(wanted["path"], "rb") as file:  # noqa: PTH123 - see above
            while data := file.read(CHUNK_BYTES):
                bridge.sendall(data)
        _check_answer(answer.readline(), "ok")


def _request(what: str, wanted: dict[str, Any]) -> socket.socket:
    bridge = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        bridge.connect(SOCKET)
    except OSError:
        bridge.close()
        raise LfsRefused("The bridge is not listening. Try again later.") from None
    question = {"what": what, "oid": wanted["oid"], "size": wanted["size"]}
    bridge.sendall(json.dumps(question).encode() + b"\n")
    return bridge


def _check_answer(line: bytes, *good: str) -> str:
    word, _, rest = line.decode(errors="replace").strip().partition(" ")
    if word not in good:
        raise LfsRefused(rest or "The bridge closed the connection.")
    return word


def _temporary() -> str:
    """Make the folder for files under way: git-lfs moves them, so it must be on the same disk."""
    found = subprocess.run(
        ["git", "rev-parse", "--git-common-dir"],
        capture_output=True,
        check=True,
        text=True,
    )
    place = os.path.join(os.path.abspath(found.stdout.strip()), "lfs", "tmp")  # noqa: PTH100, PTH118
    os.makedirs(place, exist_ok=True)  # noqa: PTH103
    return place


def _say(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
