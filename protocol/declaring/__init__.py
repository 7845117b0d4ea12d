"""Declaration of messages and settings."""
