"""What commands are made of: their frame, the way to a running bridge, and what they show."""
