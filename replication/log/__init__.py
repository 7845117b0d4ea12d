"""The log of one replica: segments, epochs, producers, validation, retention, compaction."""
