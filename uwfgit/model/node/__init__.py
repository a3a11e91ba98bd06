"""Immutable typed values, and where a thread keeps them."""
