"""The pages, one module for each kind: request in, backend asked, answer and template out.

Each has its `routes`, and asks the backend of `context`.
"""
