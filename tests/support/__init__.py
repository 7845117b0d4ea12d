"""What tests of several folders share; imported as ``fakekafka.tests.support``."""
