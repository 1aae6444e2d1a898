"""Configures logging: one line per event on stderr, with agent and session.

Every line passes the vault after it is rendered, tracebacks included: no other way out.
"""

from __future__ import annotations

import contextlib
import copy
import logging
import re
import sys
import threading
from pathlib import PurePath
from types import TracebackType
from typing import Literal, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from app.vault import Vault

Level = Literal["debug", "info", "warning", "error", "critical"]
Format = Literal["console", "json"]

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")

# They report every request and step at INFO, which says nothing that our own lines do not say;
# pydantic_settings, if it is told to debug, every value that was set.
_CHATTY = ("httpx", "httpcore", "alembic", "mcp", "pydantic_settings", "sse_starlette", "uvicorn")


def configure(level: Level, format: Format, vault: Vault, *, stream: TextIO | None = None) -> None:  # noqa: A002 - the word of LOG_FORMAT
    """Send structlog's and logging's records through one handler, rendered and redacted."""
    out = sys.stderr if stream is None else stream
    handler = _Handler(out, vault)
    handler.setFormatter(_formatter(format, vault, colors=out.isatty()))
    root = logging.getLogger()
    for former in [former for former in root.handlers if isinstance(former, _Handler)]:
        root.removeHandler(former)
    root.addHandler(handler)
    root.setLevel(level.upper())
    for name in _CHATTY:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_shared(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    sys.excepthook = _log_uncaught
    threading.excepthook = _log_uncaught_in_thread


def bind(
    *, agent: str | None = None, session: str | None = None, **more: str
) -> contextlib.AbstractContextManager[None]:
    """Put agent and session into every line that is logged inside the context."""
    known = {"agent": agent, "session": session, **more}
    return structlog.contextvars.bound_contextvars(
        **{name: value for name, value in known.items() if value is not None}
    )


class _Handler(logging.StreamHandler[TextIO]):
    """Writes redacted lines; quiet about what the ACP SDK makes of odd messages."""

    def __init__(self, stream: TextIO, vault: Vault) -> None:
        super().__init__(stream)
        self._vault = vault

    def handle(self, record: logging.LogRecord) -> bool:
        if _is_sdk_noise(record):
            if logging.getLogger().level > logging.DEBUG:
                return False
            record = _demoted(record)
        return bool(super().handle(record))

    def format(self, record: logging.LogRecord) -> str:
        return self._vault.redact(super().format(record))

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        # The inherited one prints message and arguments past the vault.
        kind, error, _ = sys.exc_info()
        if isinstance(error, RecursionError):
            raise error
        place = f"{record.pathname}:{record.lineno}"
        line = f"a log line could not be written: {kind and kind.__name__} for {place}"
        with contextlib.suppress(OSError, ValueError):
            self.stream.write(self._vault.redact(line) + self.terminator)


def _is_sdk_noise(record: logging.LogRecord) -> bool:
    """Tell the SDK's records: it logs odd things to the root logger, with a traceback."""
    return record.name == "root" and "acp" in PurePath(record.pathname).parts[:-1]


def _demoted(record: logging.LogRecord) -> logging.LogRecord:
    quiet = copy.copy(record)
    quiet.name = "acp"
    quiet.levelno, quiet.levelname = logging.DEBUG, "DEBUG"
    quiet.exc_info = quiet.exc_text = None
    return quiet


def _shared() -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]


def _formatter(style: Format, vault: Vault, *, colors: bool) -> logging.Formatter:
    render: list[Processor] = [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        _without_doubles,
    ]
    if style == "json":
        render += [
            _with_agent_and_session,
            structlog.processors.format_exc_info,
            # Rendering escapes once more: what is quoted deeply is easier to find before it.
            lambda _logger, _method, event: _redacted(event, vault),
            structlog.processors.JSONRenderer(default=repr, ensure_ascii=False),
        ]
    else:
        # Rich's tracebacks show local variables: far too much for a log.
        plain = structlog.dev.plain_traceback
        render.append(_without_controls)
        render.append(structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=plain))
    return structlog.stdlib.ProcessorFormatter(foreign_pre_chain=_shared(), processors=render)


def _without_doubles(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    # uvicorn adds its message a second time, with terminal colours in it.
    event.pop("color_message", None)
    return event


def _with_agent_and_session(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    return {"agent": None, "session": None, **event}


def _without_controls(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Show the control characters in what others said, so that a terminal does not obey them."""
    return {
        key: _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", value)
        if isinstance(value, str)
        else value
        for key, value in event.items()
    }


def _redacted(event: EventDict, vault: Vault) -> EventDict:
    return {
        key: vault.redact(value) if isinstance(value, str) else value
        for key, value in event.items()
    }


def _log_uncaught(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, traceback)
        return
    logging.getLogger(__name__).critical("uncaught error", exc_info=(kind, error, traceback))


def _log_uncaught_in_thread(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is None or issubclass(args.exc_type, SystemExit):
        return
    name = args.thread.name if args.thread else "unknown"
    logging.getLogger(__name__).critical(
        "uncaught error in thread %s",
        name,
        exc_info=(args.exc_type, args.exc_value, args.exc_traceback),
    )
