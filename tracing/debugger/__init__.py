"""Going through a run step by step: breakpoints, the place where one stands, invariants."""
