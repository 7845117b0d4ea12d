"""The admin APIs as a broker serves them (``ZkAdminManager``)."""
