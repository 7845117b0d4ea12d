"""What an argument may be, said once for Python, TOML, HTTP, the command line and the documents."""
