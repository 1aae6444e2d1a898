"""The socket in DATA_DIR: only its owner can open it, on every system."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import closing
from pathlib import Path

import pytest

from app.server.local_socket import SOCKET_NAME, bind_local


def test_only_the_owner_can_open_the_socket_also_where_its_mode_is_set_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "fchmod", refuse)

    with closing(bind_local(tmp_path)):
        mode = (tmp_path / SOCKET_NAME).stat().st_mode

    assert stat.S_IMODE(mode) == 0o600
