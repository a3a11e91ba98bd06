"""Commands about threads and steps."""
