"""Authentication, authorization and quotas of clients: values and messages."""
