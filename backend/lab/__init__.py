"""What the performance lab starts in processes of its own: the service's code without HTTP."""
