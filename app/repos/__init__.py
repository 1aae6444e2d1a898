"""Git: a mirror per repository, a clone per session, a gate that everything pushed goes through."""
