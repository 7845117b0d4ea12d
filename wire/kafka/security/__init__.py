"""The identity of clients: TLS and SASL on the listeners of brokers."""
