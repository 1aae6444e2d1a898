"""Groups Slack's error codes by what they mean for a post."""

from __future__ import annotations

from typing import Final

NO_STREAMS: Final = {
    "access_denied",
    "channel_type_not_supported",
    "missing_scope",
    "not_allowed_token_type",
    "unknown_method",
}
"""This app can never stream here."""
NOT_STREAMING: Final = {
    "message_not_in_streaming_state",
    "stopped_by_user",
    "streaming_state_conflict",
}
BAD_FORM: Final = {
    "invalid_attachments",
    "invalid_blocks",
    "invalid_blocks_format",
    "msg_blocks_too_long",
    "msg_blocks_too_many",
    "msg_too_long",
}
"""Slack cannot render a message as written, for example its tables."""
GONE: Final = {"message_not_found", "cant_update_message", "edit_window_closed", "block_mismatch"}
"""The message cannot be changed any more."""
PLACE_GONE: Final = {
    "channel_not_found",
    "is_archived",
    "is_inactive",
    "not_in_channel",
    "thread_not_found",
}
FOR_GOOD: Final = PLACE_GONE | {
    "account_inactive",
    "ekm_access_denied",
    "invalid_auth",
    "messages_tab_disabled",
    "missing_scope",
    "no_permission",
    "not_allowed_token_type",
    "not_authed",
    "restricted_action",
    "restricted_action_non_threadable_channel",
    "restricted_action_read_only_channel",
    "restricted_action_thread_locked",
    "team_access_not_granted",
    "token_expired",
    "token_revoked",
}
"""Slack will say the same again; anything else may pass."""
