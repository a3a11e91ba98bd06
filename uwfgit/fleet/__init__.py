"""Many machines: a queue on a git remote, and workers that take from it."""
