"""The edge: reads the world, prints, and turns errors into exit codes."""
