"""Snapshots: the files of a work tree as a git tree, taken around each run."""
