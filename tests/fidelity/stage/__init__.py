"""The stage of a scenario: verbs, observation, normalisation."""
