"""What both ports get from gunicorn."""

import socket
import subprocess
import sys
import time
from pathlib import Path

SERVER = """
import gc, sys
from backend.serving import gunicorn_app

def load():
    kept = [[] for _ in range({kept})]

    def application(environ, start_response):
        start_response("200 OK", [])
        return [str(len(gc.get_objects())).encode()]  # all that a full collection looks at

    application.kept = kept
    return application

gunicorn_app.run(load, {{"worker_class": "sync", "bind": "unix:" + sys.argv[1]}})
"""
KEPT = 300_000


def test_a_collection_in_a_worker_does_not_look_at_what_was_there_before_it(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    server = subprocess.Popen([sys.executable, "-c", SERVER.format(kept=KEPT), str(path)])
    try:
        with socket.socket(socket.AF_UNIX) as client:
            while client.connect_ex(str(path)):
                assert server.poll() is None
                time.sleep(0.02)
            client.sendall(b"GET / HTTP/1.0\r\n\r\n")
            answer = b"".join(iter(lambda: client.recv(4096), b""))
    finally:
        server.terminate()
        server.wait()
    assert int(answer.split(b"\r\n\r\n")[1]) < KEPT / 10
