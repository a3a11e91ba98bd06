"""JSON Schemas and the values they describe."""
