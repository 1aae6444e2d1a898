"""Words what people read on Slack; pure.

A reason goes on after a name and a colon: it begins small and has no full stop.
"""

from __future__ import annotations

from typing import Final

from app.model.wording import PULL_REQUEST

NOT_CONNECTED: Final = "not connected to Slack yet"
RECONNECTING: Final = "the connection to Slack is down; reconnecting"
REFUSED: Final = "Slack refused {method}: {error}"
NOT_CONFIRMED: Final = "Slack did not confirm {method}: {cause}"
RATE_LIMITED: Final = "Slack rate limit for {method}"

DIRECT_WITH_ANOTHER: Final = "this is a direct message with another agent; message it directly"
NOT_IN_CHANNEL: Final = "it is not in this channel; invite it with `/invite`, then try again"
CANNOT_ANSWER: Final = "This agent cannot answer here: {why}."
NOT_FOUND: Final = "Slack cannot find you in this workspace"
FROM_ANOTHER_WORKSPACE: Final = (
    "only members of this workspace can use it, and you are from another one"
)
GUEST: Final = "only full members of this workspace can use it, and you are a guest"
NOT_ACTIVE: Final = "your account is no longer active"

SOMEONE: Final = "someone"
HANDLE_MESSAGE: Final = "Handle the message below."
"""What a person who uses the message shortcut asks for."""

STATES: Final = {
    "queued": "Queued",
    "starting": "Starting",
    "working": "Working",
    "waiting": "Waiting for an answer",
    "done": "Done",
    "failed": "Failed",
    "stopped": "Stopped",
}
IS_WORKING: Final = "is working…"
STILL_WORKING: Final = "Still working"
ANSWER_COMES: Final = "Still working. The answer comes in a new message."
CONTINUED: Final = "Continued in the next message"
LEFT_OUT: Final = {"more": "{number} more", "earlier": "{number} earlier"}
ANSWER_BELOW: Final = "The answer is below."
ENDED_BELOW: Final = "{state}. The answer is below."
REST_IN_FILE: Final = "The rest of the answer is in this file."

STORED_OUTSIDE: Final = "it is stored outside Slack, at {url}"
NOT_READABLE: Final = "the app cannot read it; it needs the files:read scope"
ANSWERED: Final = "Slack answered {status}"
NO_EMPTY_FILES: Final = "Slack takes no empty files"
EMPTY_LEFT_OUT: Final = "Left out, because empty: {names}"
FILES_NOT_SENT: Final = "Couldn't send these files to Slack ({why}):"

ASKS: Final = "{agent} asks: {question}"
OWN_ANSWER: Final = "Or reply with your own answer."
CHOOSE: Final = "Choose"
SHOW_EVERYTHING: Final = "Show everything"
SEND_NOW: Final = "Send now"
DISCARD: Final = "Discard"
HELPED: Final = "This answer helped"
DID_NOT_HELP: Final = "This answer did not help"
LINKS: Final = {PULL_REQUEST: "View pull request", "Details": "Open thread"}
"""What a button says that opens an address, by the name of the link."""
