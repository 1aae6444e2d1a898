"""Connects an isolated child: an HTTP proxy outside its sandbox, and forwarded ports."""
