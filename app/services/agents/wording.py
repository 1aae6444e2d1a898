"""Words what people read about places of agents; pure."""

from __future__ import annotations

from typing import Final

NOT_HERE: Final = "an agent works for another one here; write where people talk"
