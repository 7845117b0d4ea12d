"""What a broker does with each request: one module per group of APIs."""
