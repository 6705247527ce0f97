"""A web server for the tests."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Web:
    address: str
    requests: list[str] = field(default_factory=list)


@contextmanager
def served(contents: Mapping[str, bytes], cut: tuple[str, ...] = ()) -> Iterator[Web]:
    """Serve files below ``/data``; those in ``cut`` end half way."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            web.requests.append(self.path)
            name = self.path.removeprefix("/data/")
            if name not in contents:
                self.send_error(404)
                return
            body = contents[name]
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if name in cut else body)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    web = Web(f"http://127.0.0.1:{server.server_port}/data")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield web
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
