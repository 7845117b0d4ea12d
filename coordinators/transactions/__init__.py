"""The coordinator of transactions: states, their log, markers, verification."""
