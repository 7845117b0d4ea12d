"""The recordings of clusters, and the reports and traces of failed tests."""
