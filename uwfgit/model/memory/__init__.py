"""The agents' memory: what they keep of their sessions, beside a thread."""
