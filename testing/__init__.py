"""The public face: clusters, simulations, their handles, fault injection, the pytest plugin."""
