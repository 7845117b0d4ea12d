"""The suites that come with the package: one module per suite."""
