"""`python -m tests.receiver PORT`: a webhook of its own process that takes everything at once."""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class TakesEverything(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- http.server's
        """Say nothing: whoever measures prints."""


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), TakesEverything).serve_forever()
