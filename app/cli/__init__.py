"""The command line: arguments, and words for the terminal."""

from __future__ import annotations

from app.cli.application import main

__all__ = ["main"]
