"""A user's own asyncio program in virtual time: its event loop, connections, clock, chance."""
