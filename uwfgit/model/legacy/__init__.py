"""Older forms of workflow files, read as if migrated."""
