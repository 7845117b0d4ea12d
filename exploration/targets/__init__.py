"""Targets: the worlds built for seeds, the steps that may be drawn, their healing and promises."""
