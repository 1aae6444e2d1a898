"""Runs a command under a container's seccomp profile, with the library that container engines use.

python -m tests.support.under_seccomp PROFILE COMMAND ...
"""

from __future__ import annotations

import ctypes
import ctypes.util
import json
import os
import sys
from pathlib import Path
from typing import Any

LIBRARY = ctypes.util.find_library("seccomp")
ACTIONS = {"SCMP_ACT_ALLOW": 0x7FFF0000, "SCMP_ACT_ERRNO": 0x00050000}
NOT_EQUAL = 1
UNKNOWN = -1


class _Comparison(ctypes.Structure):
    _fields_ = (
        ("arg", ctypes.c_uint),
        ("op", ctypes.c_int),
        ("datum_a", ctypes.c_uint64),
        ("datum_b", ctypes.c_uint64),
    )


class Filter:
    """A profile, ready to be loaded into this process."""

    def __init__(self, profile: dict[str, Any]) -> None:
        self._library = library = ctypes.CDLL(LIBRARY)
        library.seccomp_init.restype = ctypes.c_void_p
        default = ACTIONS[profile["defaultAction"]] | profile["defaultErrnoRet"]
        self._context = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(default)))
        self.unknown: list[str] = []
        """The calls that this machine does not have."""
        for rule in profile["syscalls"]:
            for name in rule["names"]:
                self._add(name, ACTIONS[rule["action"]], rule.get("args", ()))

    def _add(self, name: str, action: int, args: Any) -> None:
        number = self._library.seccomp_syscall_resolve_name(name.encode())
        if number == UNKNOWN:
            self.unknown.append(name)
            return
        assert all(each["op"] == "SCMP_CMP_NE" for each in args)
        compared = (_Comparison * max(len(args), 1))(
            *(_Comparison(each["index"], NOT_EQUAL, each["value"], 0) for each in args)
        )
        failed = self._library.seccomp_rule_add_array(
            self._context, ctypes.c_uint32(action), number, len(args), compared
        )
        assert failed == 0, name

    def load(self) -> None:
        """Hold this process and its children to it, for good."""
        if self._library.seccomp_load(self._context) != 0:
            raise OSError("the kernel does not take the filter")


if __name__ == "__main__":
    Filter(json.loads(Path(sys.argv[1]).read_text())).load()
    os.execvp(sys.argv[2], sys.argv[2:])
