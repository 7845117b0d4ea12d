"""A user's asyncio program in virtual time: its event loop, connections, clock, randomness."""
