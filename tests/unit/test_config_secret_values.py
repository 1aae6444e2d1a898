"""Which values of variables count as secrets, whatever the variables are called."""

from __future__ import annotations

import pytest

from app.config.names import find_secrets


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("DATABASE_URL", "postgresql://app:hunter2-hunter2@db/app", "hunter2-hunter2"),
        ("REDIS", "redis://:p%40ssw0rd-of-redis@cache:6379/0", "p@ssw0rd-of-redis"),
        ("SENTRY_DSN", "https://5f3c1b2a9d8e4f70@o1.ingest.sentry.io/42", "5f3c1b2a9d8e4f70"),
        ("HOOK", "https://hooks.slack.com/services/T0/B0/a8Xk2mQ9vLp4", "a8Xk2mQ9vLp4"),
        ("SIGNED", "https://x.example/y?sig=Zm9vYmFyMTIzNDU2Nzg5", "Zm9vYmFyMTIzNDU2Nzg5"),
        ("GH_PAT", "ghp_16C7e42F292c6912E7710c838347Ae178B4a", None),
        ("JWT", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", None),
        ("PASSPHRASE", "correct horse battery staple", None),
        ("MYSQL_PWD", "hunter2hunter2", None),
        ("ANYTHING", "7Qd2mXw9RtLk4BzVn8YpHc3F", None),
        ("ANYTHING", "xKjQmWzRtLpBnVcD", None),
    ],
)
def test_what_looks_like_a_secret_is_one(name: str, value: str, found: str | None) -> None:
    assert (found or value) in set(find_secrets(name, value))


@pytest.mark.parametrize(
    "value",
    [
        *("production", "true", "1234567890123456", "eu-central-1", "ghp_short", ""),
        *("/usr/local/bin:/usr/bin:/bin", "~/.config/agent", "./node_modules/.bin/tool7abc8def"),
        *("claude-sonnet-4-5-20250929", "gpt-4o-mini-2024-07-18", "gemini-2.5-flash-preview"),
        *("us.anthropic.claude-3-7-sonnet-20250219-v1:0", "meta-llama/Llama-3.3-70B-Instruct"),
        *("https://api.example.com/v1/models", "http://localhost:11434", "redis://cache:6379/0"),
        *("--max-old-space-size=4096", "-Xmx2048m -XX:+UseG1GC", "en_US.UTF-8", "Europe/Zurich"),
        *("A sentence that a person wrote.", "someCamelCaseOptionName", "release20260101"),
        *("Authorization", "agent@example.com", "xterm-256color", "AGENT_BRIDGE_DEMO_FAULTS"),
    ],
)
def test_ordinary_values_are_none(value: str) -> None:
    assert list(find_secrets("NODE_ENV", value)) == []


def test_a_path_under_a_telling_name_is_none() -> None:
    assert list(find_secrets("PWD", "/home/person/work")) == []
