"""Helpers of tests in several folders; imported as ``fakekafka.tests.support``."""
