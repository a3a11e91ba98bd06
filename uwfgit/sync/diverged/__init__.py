"""A thread that two people continued."""
