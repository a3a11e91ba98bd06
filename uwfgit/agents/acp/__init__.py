"""Kind ``acp``: any server of the Agent Client Protocol, version 1, over stdio."""
