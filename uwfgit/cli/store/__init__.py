"""Commands about a store, its nodes and the configuration."""
