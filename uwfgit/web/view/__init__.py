"""What a page shows, read from the store into frozen values."""
