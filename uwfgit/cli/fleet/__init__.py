"""Commands about many machines: the queue of a remote, and its workers."""
