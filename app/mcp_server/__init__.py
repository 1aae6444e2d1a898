"""Serves the bridge's tools to agents over MCP."""
