"""The three runtimes: virtual, live and threaded."""
