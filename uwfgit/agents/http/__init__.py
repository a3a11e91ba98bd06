"""How agents speak HTTP: one client, server-sent events, chat completions."""
