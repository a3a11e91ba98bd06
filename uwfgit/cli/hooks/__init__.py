"""Hooks for git that check what passes by."""
