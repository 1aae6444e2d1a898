"""The bridge's tools for agents: what each does, who may use it, and how a call is checked."""
