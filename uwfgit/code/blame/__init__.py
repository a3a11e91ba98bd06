"""Which step wrote a line, told by content."""
