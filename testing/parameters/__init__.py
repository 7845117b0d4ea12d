"""Kinds of arguments, defined once for Python, TOML, HTTP, the command line and the documents."""
