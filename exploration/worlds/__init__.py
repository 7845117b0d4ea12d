"""What is attacked: clusters with their clients, and the steps that concern these."""
