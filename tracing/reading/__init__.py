"""Questions to a recorded run: where, what, why, and the state at a moment."""
