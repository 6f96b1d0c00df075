"""One module for each kind of page. Each has `blueprint(…)` over the backend it asks."""
