"""Runs turns: the engine, the run, live agents, the prompt."""
