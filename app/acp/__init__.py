"""The agent's side: ACP over the pipes of a child process, told to the core in its own words."""
