"""A trace as a web page: one file that contains the program and the events."""
