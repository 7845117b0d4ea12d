"""Batches of simulated clusters: scenarios, engines, histograms, reports."""
