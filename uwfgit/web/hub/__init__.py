"""A hub: the stores of many machines on one server, each behind its own client."""
