"""GitHub: one App per agent, on issues, pull requests and reviews."""
