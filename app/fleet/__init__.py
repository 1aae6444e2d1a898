"""Several bridges on one PostgreSQL: who is there, who leads, who runs which turn."""
