"""Looking on while agents work: in the command that runs them, or from another."""
