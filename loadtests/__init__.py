"""Load tests and the performance lab: scenarios, pure models, a baseline and the report.

This package imports nothing of the backend or the frontend. It talks to them over HTTP, like any
other client, so that it can measure a service on another machine and cannot be part of what it
measures. What it knows of the service is the REST interface and the names of a flight's fields.

`loadtests.models` is apart: pure, and the one part of this package that the frontend may import.
"""
