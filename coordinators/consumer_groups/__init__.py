"""Groups of the consumer protocol (KIP-848), an extension that a configuration switches on."""
