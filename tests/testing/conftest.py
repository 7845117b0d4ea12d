from fakekafka.tests.support.pytest_suites import suite as suite
