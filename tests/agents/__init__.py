"""Real agents on this machine: which versions, how they are installed, and the model they ask."""
