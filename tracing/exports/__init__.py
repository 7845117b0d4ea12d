"""Export of traces to the formats of other tools, one module each; ``forms`` lists them."""
