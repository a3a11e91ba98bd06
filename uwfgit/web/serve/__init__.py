"""The pages served: to this machine's user alone, unless told otherwise."""
