"""One module per API key, named ``api_KEY_name``; each defines one constant ``API``.

A new file is all that a new API needs: ``wire.kafka.registry`` finds it, and the ApiVersions
answer,
the documentation and the list of gaps follow.
"""
