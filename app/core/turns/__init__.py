"""What happens in a turn: the engine, the run, live agents, the prompt."""
