"""Who a client is: TLS and SASL on the listeners of brokers."""
