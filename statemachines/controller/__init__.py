"""The controller: its election, its events and their queue, and what it watches."""
