"""One cycle, and the commands that run cycles."""
