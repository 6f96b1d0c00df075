"""Flightchain's backend: flight records in a blockchain, and three questions about them.

docs/explanation/house.md names its packages, from the roof down.
"""
