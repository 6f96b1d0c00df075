"""The running service: its processes, its web server and its lanes.

`supervisor` starts the processes and looks after them, and `watching` tells when one hangs.
`web_server` runs gunicorn in one of them. `site` is what its workers serve: the lanes of the REST
service, and the way of each request through the table of routes. The server itself stands in the
package `serving`, which the pages share.
"""
