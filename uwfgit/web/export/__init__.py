"""A folder of pages, or a single one, that needs no server and no script."""
