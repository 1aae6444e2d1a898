"""Words why files are not sent or not fetched; pure."""

from __future__ import annotations

FILE_NOT_SENT = "`{name}` was not sent: {why}."
FILES_NOT_SENT = "{more} more files were not sent."
FILES_NOT_STORED = "Files could not be stored ({cause}). The next turn tries again."
FILES_TOO_MANY = "only {limit} files per turn are sent"
FILES_TOGETHER = "the files of one turn may total {limit}"
REST_LATER = "{why}; the rest comes with the next turn"
FILE_IS_FOLDER = "it is a folder; only files are sent"
FILE_IRREGULAR = "it is not a regular file"
FILE_LINKED = "it is a hard link to a file elsewhere; only copies are sent"
FILE_EMPTY = "it is empty"
FILE_OUTSIDE = "it is not in the agent's folder"
FILE_ADDRESS = "its address makes no sense"
FILE_UNREADABLE = "it cannot be read ({cause})"
FILE_TOO_LARGE = "it has {size}; the limit is {limit}"
FILE_HOLDS_SECRET = "it holds a secret that the bridge knows"  # noqa: S105 - words, no secret
FILE_TOO_SLOW = "it took longer than {seconds:g} s"
NOT_FETCHED = "{name} was attached, but could not be fetched from {service}: {why}"
