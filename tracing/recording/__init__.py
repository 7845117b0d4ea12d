"""Recording a run: rows as they happen, packed in chunks, written to a file."""
