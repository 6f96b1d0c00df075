"""Defines the version of the service, here and nowhere else."""

VERSION = "1.0.0"
