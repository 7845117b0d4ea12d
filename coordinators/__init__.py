"""Coordinators of consumer groups, with their committed offsets, and of transactions."""
