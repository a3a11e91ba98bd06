"""Workflows: as values, as files, and pinned."""
