"""Engines that carry out the runs of a batch: here, in processes, on Spark."""
