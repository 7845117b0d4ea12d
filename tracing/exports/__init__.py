"""Traces in the forms of other tools, one module each; ``forms`` names them."""
