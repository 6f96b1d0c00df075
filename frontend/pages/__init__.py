"""The pages, one module for each kind. Each has `blueprint(…)` over the backend it asks."""
