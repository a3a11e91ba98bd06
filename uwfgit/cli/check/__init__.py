"""Checks of what others made, in a child of their own."""
