"""Runs servers that the lab measures besides the service itself."""
