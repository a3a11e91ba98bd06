"""A model's or an agent's judgement beside the workflow: supervisor and summary."""
