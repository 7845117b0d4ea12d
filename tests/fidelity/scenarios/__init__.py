"""The scenarios, one module for each subject."""
