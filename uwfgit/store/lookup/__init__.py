"""Where a hash is: the derived table, never the truth."""
