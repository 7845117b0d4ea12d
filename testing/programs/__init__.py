"""Users' programs in virtual time: run from scripts, run as tests, and checked."""
