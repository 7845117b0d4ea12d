"""``fakekafka debug``: step through a run, in lines or on the whole terminal."""
