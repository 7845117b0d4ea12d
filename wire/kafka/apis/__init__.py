"""One module per API key, named ``api_KEY_name``; each defines one constant ``API``.

A new API needs a file here and its newest version in ``wire.kafka.registry``, which imports the
file on the first request. The ApiVersions answer, the documentation and the list of gaps follow.
"""
