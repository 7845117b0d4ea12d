"""Judges of a history: each brings a cluster with clients, and says in the end what is wrong."""
