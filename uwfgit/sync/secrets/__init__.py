"""Secrets: found before anything leaves, and taken out again."""
