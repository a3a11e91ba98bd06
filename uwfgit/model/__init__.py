"""What the bytes mean: nodes, schemas, workflows, threads."""
