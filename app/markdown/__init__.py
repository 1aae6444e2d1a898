"""What people write and see: Markdown from the reader's side, for code that must judge it."""
