"""Commands for one agent from a terminal: probing it and logging it in."""
