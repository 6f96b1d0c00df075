"""Runs the service: its processes, its web server and its lanes.

`supervisor` starts the processes and restarts them, `hang_detection` tells when one hangs, and
`announcement` reports where they answer.
`web_server` runs gunicorn in one of them, and tells its workers which lane and handler a request
goes to. The server itself is the package `backend.serving`, which the frontend uses, too.
`witness_server` serves a witness instead of a ledger.
"""
