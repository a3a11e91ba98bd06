"""Child processes of agents: starting, reading, watching and ending them."""
