"""What is done with one agent from a terminal: trying what it can do, and logging it in."""
