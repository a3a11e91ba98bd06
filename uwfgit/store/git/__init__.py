"""The one door to git, and what is read or written through it."""
