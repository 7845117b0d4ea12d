"""Who clients are and what they may do: values and messages."""
