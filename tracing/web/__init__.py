"""A trace as a web page: one file with the program and the events in it."""
