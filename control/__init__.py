"""The control API, which controls a cluster over HTTP and JSON, and the live page that uses it."""
