"""Commands of the web view."""
