"""A guarded caller through nginx with weir: both sides of the wire."""

import os
import subprocess
import unittest

from harness import BUILD, Nginx, Service, drained
import runner

PROGRAM = BUILD / "examples/http_client/http_client"

POLICY = """service = "{service}"
[limit]
floor = 4
ceiling = 4
[deadline]
from = ["header:x-envoy-expected-rq-timeout-ms"]
[trust]
networks = ["127.0.0.0/8"]
[resource.api]
"""

HTTP = """
  weir_policy shop.toml;
  upstream service {{ server {address}; keepalive 16; }}
  server {{
    listen 127.0.0.1:{{port}};
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    location / {{ weir api; proxy_pass http://service; }}
  }}
"""


def rows(text):
    """The table of the example, by the names of its rows."""
    return {line[:28].strip(): int(line[28:]) for line in text.splitlines()}


class HttpClientTest(unittest.TestCase):
    def setUp(self):
        self.service = f"e2e-client-{os.getpid()}"
        self.backend = Service()
        self.addCleanup(self.backend.close)

    def call(self, path, callers):
        nginx = Nginx(HTTP.format(address=self.backend.address),
                      {"shop.toml": POLICY.format(service=self.service)})
        self.addCleanup(nginx.stop)
        nginx.start()
        done = subprocess.run(
            [PROGRAM, f"http://127.0.0.1:{nginx.port()}", path, str(callers), "8"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        drained(self.service)
        return rows(done.stdout)

    def test_with_room_every_call_is_answered_and_sent_once(self):
        seen = self.call("/work?ms=1", callers=2)
        self.assertEqual(seen["answered"], seen["calls"])
        self.assertEqual(seen["requests sent"], seen["calls"])

    def test_what_would_be_refused_is_kept_at_home(self):
        seen = self.call("/work?ms=40", callers=128)
        self.assertEqual(seen["calls"], seen["answered"] + seen["refused by the service"]
                         + seen["kept at home"] + seen["failed otherwise"])
        # The service does 100 a second; a caller that is kept at home asks
        # again after 5 ms, so that nearly all calls must stay there.
        self.assertGreater(seen["kept at home"], seen["requests sent"])
        self.assertLess(seen["of them retries"], 0.1 * seen["calls"])


if __name__ == "__main__":
    runner.main("e2e_http_client_test")
