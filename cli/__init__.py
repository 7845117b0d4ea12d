"""The ``fakekafka`` command: one module per verb, imported when the verb is called."""
