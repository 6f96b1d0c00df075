"""Flightchain's backend: flight records in a blockchain, and three questions about them."""
