"""How messages and settings are declared."""
