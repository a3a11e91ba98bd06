"""One thread: its record, its events and what is derived from them."""
