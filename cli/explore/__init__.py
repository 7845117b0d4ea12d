"""``fakekafka explore``: random faults, under which invariants are checked."""
