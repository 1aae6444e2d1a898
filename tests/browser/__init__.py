"""Stories in a real browser; as a package, so that the browser ends where its stories end."""
