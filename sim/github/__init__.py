"""A GitHub on loopback: REST, webhooks and git, stateful, refusing what GitHub refuses."""
