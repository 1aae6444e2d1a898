"""Commands for the person who runs the bridge: pause, drain, backup, restore, schema."""
