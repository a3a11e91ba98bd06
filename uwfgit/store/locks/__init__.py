"""Who may write, one at a time."""
