"""Says what to do about an error of an agent, by the kind that the agent itself names; pure.

No kind is guessed from words: a message may say anything.
"""

from __future__ import annotations

from typing import Final

MODEL_FAILED: Final = "its model did not answer."
REMEDIES: Final = {
    "billing_error": "Its provider refuses for billing reasons: check the plan of the account.",
    "server_error": "Its provider has a problem: try again later.",
    "overloaded": "Its provider is overloaded: try again later.",
    "system_error": "Try again, or choose another model.",
    "invalid_request": "Its provider refused the request: say `new` to start over without it.",
    "max_output_tokens": "The answer was longer than its model allows: ask for less at once.",
    "transport_lost": "Its own program ended: try again.",
    "worker_shutdown": "Its own program ended: try again.",
}


def remedy(reason: object) -> str:
    """Say what to do about an error of a kind; empty if that is not known."""
    return REMEDIES.get(reason, "") if isinstance(reason, str) else ""
