"""The suites of released clients, run against ``fakekafka serve``: ``make clients``."""
