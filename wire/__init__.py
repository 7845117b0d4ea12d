"""Kafka's TCP protocol: listeners, connections, and the codec with one file per API key.

Bytes become the messages of ``protocol`` here and nowhere else; what a message means is the
business of the backend behind the listener.
"""
