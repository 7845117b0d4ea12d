"""Worlds that are attacked: clusters with their clients, and the steps that concern these."""
