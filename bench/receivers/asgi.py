"""Serves an application with the very settings of the bridge: uvicorn, httptools, uvloop."""

from __future__ import annotations

import sys
from typing import Any

import uvloop

from app.server.listener import Listener, bound
from bench.machine import LISTENING, SERVER_CORE, pin
from bench.tally import Tally

tally = Tally(sys.argv[2])
"""What was dealt with, in the file that the command line names."""


def serve(application: Any) -> None:
    """Serve on the port of the command line until killed."""
    pin(SERVER_CORE)
    listener = Listener(application, lambda: print(LISTENING, flush=True))
    uvloop.run(listener.serve(sockets=[bound("127.0.0.1", int(sys.argv[1]))]))
