"""Sharing and proving threads."""
