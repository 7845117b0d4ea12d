"""What one run measures, and when it has to end."""
