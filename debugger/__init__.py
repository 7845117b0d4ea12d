"""The step debugger: a run that is stepped, inspected, taken back, and changed."""
