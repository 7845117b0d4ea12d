"""Where the runs of a batch are carried out: here, in processes, on Spark."""
