"""Several bridges on one PostgreSQL: who is there, who has the desk, who runs which turn."""
