"""Helpers shared by tests of several folders, imported as ``fakekafka.tests.support``."""
