"""Runs the service's code without HTTP, in processes that the performance lab starts."""
