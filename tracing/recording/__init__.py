"""The recording of a run: events as rows, packed into chunks, written to a file."""
