"""What people write and see: Markdown read from the reader's side, for whoever must judge it."""
