"""The recordings of clusters, and what is told and kept of a failed test."""
