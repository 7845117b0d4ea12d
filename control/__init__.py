"""The control API, what a cluster can do over HTTP and JSON, and the live page over it."""
