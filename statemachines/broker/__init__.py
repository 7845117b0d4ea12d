"""A broker's id and its dynamic configuration, which both depend on ZooKeeper."""
