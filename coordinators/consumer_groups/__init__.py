"""Groups of the consumer protocol (KIP-848), an extension that the configuration enables."""
