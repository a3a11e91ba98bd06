"""What an agent is told, and what its answer means."""
