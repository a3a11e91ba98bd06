"""The view for people who look rather than read: pages, an export, a server."""
