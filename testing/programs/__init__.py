"""Programs in virtual time as users start them: from scripts, as tests, with checks."""
