"""Which role comes next, and with what prompt."""
