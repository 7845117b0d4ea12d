"""`fakekafka explore`: random faults, watched by invariants."""
