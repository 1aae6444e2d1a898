"""What bounds a turn: how many run at once, how long, at what cost, and what providers allow."""
