"""``fakekafka debug``: steps through a run, in line mode or on the whole terminal."""
