"""Keeping a store small and whole."""
