"""YAML with places: reading it, writing it, editing its text."""
