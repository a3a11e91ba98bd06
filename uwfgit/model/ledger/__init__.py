"""What is recorded, found by name and added to."""
