"""For authors of agents: an adapter out of one function, and the ``uwf-…`` commands."""
