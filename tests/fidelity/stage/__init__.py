"""What a scenario does and sees: verbs, observation, normalisation."""
