"""Records to HTML and charts to SVG (pure): the one renderer of every page."""
