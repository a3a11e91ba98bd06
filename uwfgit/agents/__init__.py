"""Who does the work: one module per kind of agent."""
