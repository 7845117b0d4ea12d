"""The admin APIs that brokers serve (``ZkAdminManager``)."""
