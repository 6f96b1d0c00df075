"""Programs that the lab starts: tasks in the usual ways of Python, and the parent of a cluster."""
