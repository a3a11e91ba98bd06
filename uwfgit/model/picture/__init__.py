"""A workflow's graph as a picture."""
