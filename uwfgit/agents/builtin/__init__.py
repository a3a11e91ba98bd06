"""Kind ``builtin``: a tool loop of our own over a chat completions API."""
