"""The git room: bytes, oids and refs; the only place that imports pygit2."""
