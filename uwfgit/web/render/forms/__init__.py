"""What a page sends: plain forms, which need no script, and what is said of them."""
