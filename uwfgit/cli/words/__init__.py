"""What shells and docs know of the commands."""
