"""The CLIs that people have, run headless: one module a kind."""
