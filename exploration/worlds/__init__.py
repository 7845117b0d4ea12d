"""The worlds of targets: clusters with clients, and the steps that affect these clients."""
