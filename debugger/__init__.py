"""The step debugger, which steps through a run forward and back, inspects it, and changes it."""
