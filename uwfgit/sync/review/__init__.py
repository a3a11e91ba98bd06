"""Threads reviewed on a forge."""
