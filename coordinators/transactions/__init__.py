"""The transaction coordinator: states, the transaction log, markers, verification."""
