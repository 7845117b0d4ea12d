"""The TCP protocols of Kafka and ZooKeeper: listeners, connections, and codecs.

Bytes are decoded to the messages of ``protocol`` and ``zkfake`` here and nowhere else; the backend
behind a listener handles the messages.
"""
