"""What agents ask of each other: who may ask whom, how far, and what comes of it."""
