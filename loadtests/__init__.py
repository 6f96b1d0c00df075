"""Measures the service under load: scenarios, models, a baseline, experiments and reports.

This package imports nothing of the backend or the frontend, but for `in_process`, which measures
code, and `machine`. It talks to them over HTTP, like any
other client, so that it can measure a service on another machine and cannot be part of what it
measures. It knows only the REST interface of the service and the names of a flight's fields.

`loadtests.models` is pure, and the only part of this package that the frontend may import.
"""
