"""Stores files where every machine of a bridge finds them: a shared folder, or a bucket."""
