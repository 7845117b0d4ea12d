"""The kinds of arguments, said once for Python, TOML, HTTP, the command line and the documents."""
