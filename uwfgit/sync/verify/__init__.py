"""Proving threads from git alone."""
