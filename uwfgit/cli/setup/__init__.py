"""Choosing an agent: what is installed, what to ask, what to write."""
