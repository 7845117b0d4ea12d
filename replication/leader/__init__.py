"""The leader's side: produce, fetch, offsets, and fetch sessions."""
