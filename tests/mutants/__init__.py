"""Wrong versions of the package made by hand, each of which a test or the explorer has to catch."""
