"""What a leader answers: produce, fetch, offsets, and the sessions of those who fetch."""
