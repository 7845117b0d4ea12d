"""Pure leader election: strategies, the 0.10 selectors, rebalance selection, replica assignment.

Everything here is a function of its arguments: no ZooKeeper, no state machines, and no randomness
except the generator that the caller passes.
"""
