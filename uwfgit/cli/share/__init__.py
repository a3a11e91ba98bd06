"""Commands that share threads and prove them."""
