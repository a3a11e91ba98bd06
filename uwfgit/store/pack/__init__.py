"""Many objects at once, as a pack."""
