"""Beside the runs: an agent's session asked or opened, threads in the trash."""
