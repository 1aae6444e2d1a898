"""Permissions: policy, asks, their answers and their record."""
