"""`conversations`: lists, shows and manages whole conversations of the running bridge."""
