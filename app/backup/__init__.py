"""Writes and reads backups: one sealed file with everything that a bridge keeps."""
