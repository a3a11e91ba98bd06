"""Whose store it is, and what it could make git do."""
