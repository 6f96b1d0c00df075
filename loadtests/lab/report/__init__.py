"""Makes the report of an experiment: one HTML file with inline SVG and no script."""
