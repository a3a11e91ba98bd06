"""A workflow walked through without agents or writes."""
