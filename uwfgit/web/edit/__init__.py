"""The editor of workflow files: text and picture of one, saved by a person only."""
