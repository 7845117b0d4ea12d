"""The feed of a served cluster's events, found by polling its state and observing its clients."""
