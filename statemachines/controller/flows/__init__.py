"""What the controller does about each kind of change: one module per kind."""
