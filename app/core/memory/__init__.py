"""What agents remember across conversations: noted after a turn, kept in files, found by words."""
