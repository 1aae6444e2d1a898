"""Acts as the remote of an agent's git: relays pushes, and has the mirror updated before a fetch.

It is one stdlib file that imports nothing of the package: a copy of it is in the folder of
the agent remote and runs in the agent's isolation. As `relay.py push whole FOLDER` it is the
`receive-pack` that git calls, and relays bytes both ways over a socket. As `relay.py fetch whole
MIRROR` it is the `upload-pack`: it waits until the bridge has updated the mirror, then lets git
read it.

With `partial` instead of `whole` the mirror lacks the content of files. Then it reads what git
requests or is about to push, and passes that on when the bridge has fetched what is missing.
"""

from __future__ import annotations

import io
import os
import socket
import subprocess
import sys
import threading

CHUNK_BYTES = 65536
ASKED_AT_ONCE = 100_000
"""As many names as the bridge accepts; the checkout of most trees needs fewer."""
LOOKED_AT = "--max-count=1000"
"""More commits than are made between two pushes: without `origin/*` all history looks new."""
END = b"0000"
"""The packet with which a request ends: https://git-scm.com/docs/protocol-v2."""


def main(what: str, how: str, path: str) -> int:
    """Do what git wants: push, or fetch."""
    clone = os.getcwd()  # noqa: PTH109 - pathlib takes long to load
    os.chdir(os.path.dirname(__file__))  # noqa: PTH120 - a socket's path has little room
    if what == "fetch" and how == "partial":
        return _read_partial(path)
    if what == "fetch":
        _ask("fetch")
        os.execvp("git", ["git", "upload-pack", path])  # noqa: S606 - it takes the place of this one
    _push(clone if how == "partial" else "")
    return 0


def _push(partial_clone: str) -> None:
    gate = _connect("push")
    threading.Thread(target=_send, args=(gate, partial_clone), daemon=True).start()
    _copy(gate, 1)


def _read_partial(path: str) -> int:
    """Let git read a mirror; each of its requests waits until what it needs is there."""
    git = ("git", "-c", "uploadpack.allowFilter=true", "upload-pack", path)
    # The only version in which a request says all that it wants at once.
    reading = subprocess.Popen(["env", "GIT_PROTOCOL=version=2", *git], stdin=subprocess.PIPE)
    assert reading.stdin is not None
    while request := _request():
        _prepare(request)
        reading.stdin.write(b"".join(request))
        reading.stdin.flush()
    reading.stdin.close()
    return reading.wait()


def _request() -> list[bytes]:
    """Read git's output up to the end of a request; empty at the end of the output."""
    request = []
    while packet := _packet():
        request.append(packet)
        if packet == END:
            return request
    return request


def _packet() -> bytes:
    """Read one packet of git's output; empty at the end."""
    size = sys.stdin.buffer.read(len(END))
    return size + sys.stdin.buffer.read(max(0, int(size or b"0", 16) - len(END)))


def _prepare(request: list[bytes]) -> None:
    """Have the bridge do what a request needs."""
    words = [packet[len(END) :].strip() for packet in request]
    if b"command=ls-refs" in words:
        _ask("fetch")
    _bring([word[len(b"want ") :] for word in words if word.startswith(b"want ")])


def _complete(clone: str, commands: list[bytes]) -> None:
    """Have the bridge fetch all files of what is pushed.

    Git sends no file that the other side should already have, and the gate accepts no commit with
    a missing file. Most were fetched for a checkout, but a commit may also be made without one.
    """
    words = [packet[len(END) :].partition(b"\0")[0].split() for packet in commands]
    pushed = b"\n".join(each[1] for each in words if len(each) == 3)
    made = _list_objects(clone, pushed, LOOKED_AT, "--ignore-missing", "--not", "--remotes")
    if made:
        files = ("--objects", "--no-object-names", "--no-walk", "--missing=print")
        lines = _list_objects(clone, made, *files).split()
        _bring([line[1:] for line in lines if line.startswith(b"?")])


def _list_objects(clone: str, names: bytes, *how: str) -> bytes:
    """List objects of a clone; empty if that fails, since the push itself will say why."""
    command = ("git", "-C", clone, "rev-list", "--stdin", *how)
    return subprocess.run(command, input=names, capture_output=True).stdout


def _bring(names: list[bytes]) -> None:
    for start in range(0, len(names), ASKED_AT_ONCE):
        _ask("objects", b"\n".join(names[start : start + ASKED_AT_ONCE]))


def _ask(what: str, names: bytes = b"") -> None:
    """Wait until the bridge has done something, and show what it says about it."""
    gate = _connect(what)
    gate.sendall(names)
    gate.shutdown(socket.SHUT_WR)
    _copy(gate, 2)


def _connect(what: str) -> socket.socket:
    gate = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        gate.connect(what)
    except OSError:
        sys.exit("The bridge is not listening. Try again later.")
    return gate


def _copy(gate: socket.socket, target: int) -> None:
    while data := gate.recv(CHUNK_BYTES):
        while data:
            data = data[os.write(target, data) :]


def _send(gate: socket.socket, partial_clone: str) -> None:
    given = sys.stdin.buffer
    assert isinstance(given, io.BufferedReader)
    try:
        if partial_clone:
            commands = _request()
            _complete(partial_clone, commands)
            gate.sendall(b"".join(commands))
        while data := given.read1(CHUNK_BYTES):
            gate.sendall(data)
    finally:
        gate.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    os._exit(main(*sys.argv[1:]))
