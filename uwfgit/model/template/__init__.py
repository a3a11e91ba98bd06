"""Mustache templates: parsed, rendered, and made of Liquid."""
