"""Stories: scenarios as a sequence of steps, with the expected state after each step."""
