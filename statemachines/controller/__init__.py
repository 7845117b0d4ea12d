"""The controller: its election, its events with their queue, and its watches."""
