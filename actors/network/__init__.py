"""The network: links, their rules, latency and costs."""
