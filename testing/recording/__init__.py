"""What clusters record of themselves, and what is told and kept of a failed test."""
