"""The ``fakekafka`` command: one module per sub-command, imported when it is used."""
