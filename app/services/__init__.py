"""People's side: one folder per platform, the same names in each."""
