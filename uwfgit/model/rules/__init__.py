"""What makes a workflow file valid."""
