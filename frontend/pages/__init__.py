"""The pages, one module for each kind. Each has its `routes`, and asks the backend of `context`."""
