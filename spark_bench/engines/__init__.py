"""Engines that carry out the runs of a batch: in this process, in several, or on Spark."""
