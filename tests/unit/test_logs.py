"""What stands in a log line, and what never does."""

from __future__ import annotations

import io
import json
import logging
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from app import logs
from app.config import load
from app.vault import MASK, Vault

CANARY = 'canary-"0042"-\\value\nof-two-lines'


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    hooks = sys.excepthook, threading.excepthook
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    sys.excepthook, threading.excepthook = hooks
    structlog.reset_defaults()


def configured(style: logs.Format, level: logs.Level = "info") -> io.StringIO:
    """Start logging into a buffer with one known secret."""
    # pytest's own handlers raise what ours reports.
    logging.getLogger().handlers.clear()
    out = io.StringIO()
    logs.configure(level, style, Vault([CANARY]), stream=out)
    return out


def lines(out: io.StringIO) -> list[dict[str, object]]:
    """Read what was logged as JSON."""
    return [json.loads(line) for line in out.getvalue().splitlines()]


def leak_everywhere() -> None:
    """Put the canary wherever a log line can carry it."""
    secret = {"headers": {"authorization": [f"Bearer {CANARY}"]}}
    log = logging.getLogger("leaky")
    log.warning(CANARY)
    log.warning("with argument %s", CANARY)
    log.warning("with representation %r", secret)
    log.warning("with extra", extra={"request": secret})
    structlog.get_logger("leaky").warning("with key", token=CANARY, request=secret)
    try:
        int(CANARY)
    except ValueError as error:
        log.exception("with traceback")
        log.warning("with error %r", error)
        structlog.get_logger("leaky").exception("with traceback")
    with logs.bind(agent="claude", session=CANARY):
        log.warning("with context")


@pytest.mark.parametrize("style", ["console", "json"])
def test_no_secret_leaves_through_any_part_of_a_line(style: logs.Format) -> None:
    out = configured(style)

    leak_everywhere()

    text = out.getvalue()
    assert text.count(MASK) == 10
    assert "canary" not in text
    assert "of-two-lines" not in text


def test_stdlib_and_structlog_lines_look_alike() -> None:
    out = configured("json")

    with logs.bind(agent="claude", session="web:1:claude"):
        logging.getLogger("app.core").info("turn %s started", 7)
        structlog.get_logger("app.acp").info("turn %s started", 7)

    first, second = lines(out)
    assert first.pop("logger") == "app.core"
    assert second.pop("logger") == "app.acp"
    assert first.keys() == second.keys()
    assert first["event"] == second["event"] == "turn 7 started"
    assert first["agent"] == second["agent"] == "claude"
    assert first["session"] == second["session"] == "web:1:claude"


def test_every_line_names_agent_and_session_even_when_there_is_none() -> None:
    out = configured("json")

    logging.getLogger("app").info("started")

    (line,) = lines(out)
    assert line["agent"] is None
    assert line["session"] is None


def test_context_given_as_extra_is_shown() -> None:
    out = configured("json")

    logging.getLogger("app.core").info("queued", extra={"agent": "codex", "session": "s"})

    (line,) = lines(out)
    assert (line["agent"], line["session"]) == ("codex", "s")


def test_context_ends_with_its_block() -> None:
    out = configured("console")

    with logs.bind(agent="claude"):
        logging.getLogger("app").info("inside")
    logging.getLogger("app").info("outside")

    inside, outside = out.getvalue().splitlines()
    assert "agent=claude" in inside
    assert "agent" not in outside


def test_lines_below_the_level_are_dropped() -> None:
    out = configured("json", "warning")

    logging.getLogger("app").info("quiet")
    structlog.get_logger("app").info("quiet")
    logging.getLogger("app").warning("loud")

    assert [line["event"] for line in lines(out)] == ["loud"]


def test_configuring_again_does_not_double_the_lines() -> None:
    configured("console")
    out = configured("json")

    logging.getLogger("app").info("once")

    assert len(lines(out)) == 1


def sdk_record() -> logging.LogRecord:
    """Make a record as the ACP SDK makes one for an odd message."""
    error = ValueError("unknown update")
    path = "/venv/lib/python3.11/site-packages/acp/connection.py"
    cause = (ValueError, error, None)
    return logging.LogRecord("root", logging.ERROR, path, 214, "Error in %s", ("update",), cause)


def test_noise_of_the_acp_sdk_is_dropped() -> None:
    out = configured("json")

    logging.getLogger().handle(sdk_record())

    assert out.getvalue() == ""


def test_noise_of_the_acp_sdk_is_a_short_debug_line() -> None:
    out = configured("json", "debug")

    logging.getLogger().handle(sdk_record())

    (line,) = lines(out)
    assert line["level"] == "debug"
    assert line["event"] == "Error in update"
    assert "exception" not in line


def test_errors_of_our_own_acp_package_stay_errors() -> None:
    out = configured("json")
    record = sdk_record()
    record.name, record.pathname = "app.acp.session", "/opt/bridge/app/acp/session.py"

    logging.getLogger("app.acp.session").handle(record)

    (line,) = lines(out)
    assert line["level"] == "error"
    assert "ValueError: unknown update" in str(line["exception"])


def test_a_line_that_cannot_be_rendered_shows_no_arguments() -> None:
    out = configured("console")

    logging.getLogger("app").warning("%d apples", CANARY)

    assert "could not be written" in out.getvalue()
    assert "canary" not in out.getvalue()


def test_uncaught_errors_are_logged_and_redacted() -> None:
    out = configured("json")
    error = RuntimeError(CANARY)

    sys.excepthook(RuntimeError, error, None)
    thread = threading.Thread(target=lambda: [].pop(), name="writer")
    thread.start()
    thread.join(timeout=5)

    first, second = lines(out)
    assert first["level"] == second["level"] == "critical"
    assert "RuntimeError: [secret]" in str(first["exception"])
    assert "writer" in str(second["event"])


def test_interrupting_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    out = configured("json")

    sys.excepthook(KeyboardInterrupt, KeyboardInterrupt(), None)

    assert out.getvalue() == ""
    assert "KeyboardInterrupt" in capsys.readouterr().err


def test_logs_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", "console", Vault())

    logging.getLogger("app").info("hello", extra={"color_message": "HELLO"})

    captured = capsys.readouterr()
    assert captured.out == ""
    assert "hello" in captured.err
    assert "HELLO" not in captured.err


@pytest.mark.parametrize("style", ["json", "console"])
def test_escape_sequences_of_others_do_not_reach_the_terminal(style: logs.Format) -> None:
    out = configured(style)

    logging.getLogger("agent").warning("it said %s", "\x1b[2J\x1b]0;title\x07")
    structlog.get_logger("agent").warning("it said", words="\x1b[2J\x1b]0;title\x07")

    assert "\x1b" not in out.getvalue()
    assert "\x07" not in out.getvalue()


def test_the_settings_library_logs_no_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has a variable of its own that makes it log all it reads, before the vault knows any."""
    monkeypatch.setenv("PYDANTIC_SETTINGS_DEBUG", "1")
    out = configured("json", level="debug")

    load({"PATH": "", "NO_PROXY": "canary.example"}, home=tmp_path)

    assert out.getvalue() == ""
