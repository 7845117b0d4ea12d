"""The actors of a broker: broker, controller, replica fetchers."""
