"""Turns stored deliveries into turns: access, floor, one commit."""
