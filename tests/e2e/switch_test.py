"""An operator's switch and drill on a live service, with real nginx."""

import json
import os
import pathlib
import subprocess
import unittest

from harness import BUILD, Flood, Nginx, Service, forget, until
import runner

WEIR = BUILD / "cli/weir"

POLICY = """service = "{service}"
[limit]
floor = 50
[resource.pay]
[[resource.search.degrade]]
name = "plain"
[[resource.search.degrade]]
name = "cached"
[resource.health]
exempt = true
"""

CONF = """
  weir_policy shop.toml;
  upstream service { server %s; keepalive 16; }
  map $weir_degrade $branch { 2 "status?code=500"; default "work?ms=1"; }
  server {
    listen 127.0.0.1:{port};
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    location /pay { weir pay; proxy_pass http://service; }
    location /health { weir health; proxy_pass http://service; }
    location /search { weir search; proxy_pass http://service/$branch; }
  }
"""


class SwitchTest(unittest.TestCase):
    serial = 0

    def setUp(self):
        SwitchTest.serial += 1
        self.service = f"switch-{os.getpid()}-{SwitchTest.serial}"
        self.segment = pathlib.Path(f"/dev/shm/weir.{self.service}")
        self.addCleanup(forget, self.service)
        self.backend = Service()
        self.addCleanup(self.backend.close)
        self.nginx = self.start()
        self.addCleanup(lambda: self.nginx.stop())

    def start(self):
        nginx = Nginx(CONF % self.backend.address,
                      {"shop.toml": POLICY.format(service=self.service)})
        return nginx.start()

    def weir(self, *words, status=0):
        done = subprocess.run([WEIR, *words], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, status, done.stderr + done.stdout)
        return done.stdout + done.stderr

    def switch(self, *words, status=0):
        return self.weir("switch", self.service, *words, status=status)

    def degrade_seen(self):
        with self.backend.lock:
            return self.backend.headers[-1].get("weir-degrade")

    def test_a_pause_refuses_at_once_and_says_until_when(self):
        self.assertEqual(self.nginx.get("/pay").status, 200)
        self.assertEqual(self.switch("pay", "pause", "--for", "10m"),
                         "pay: paused by hand, 10m left\n")
        refused = self.nginx.get("/pay")
        self.assertEqual(refused.status, 503)
        self.assertEqual(refused.getheader("weir-reason"), "paused")
        # Up to half on top, so that callers do not come back together.
        self.assertTrue(598 <= int(refused.getheader("Retry-After")) <= 900)
        self.assertEqual(self.nginx.get("/search").status, 200)
        self.assertIn("paused by hand", self.switch())
        self.assertIn("(paused 10m", self.weir("top", self.service, "--once",
                                               "--interval", "0.1"))
        self.switch("pay", "resume")
        self.assertEqual(self.nginx.get("/pay").status, 200)

    def test_a_pause_outlives_the_service_and_its_segment(self):
        self.switch("pay", "pause")
        self.nginx.stop()
        self.segment.unlink(missing_ok=True)
        self.nginx = self.start()
        self.assertEqual(self.nginx.get("/pay").status, 503)
        self.switch("--all", "resume")
        self.assertEqual(self.nginx.get("/pay").status, 200)
        self.assertFalse(pathlib.Path(f"{self.segment}.switches").exists())

    def test_the_service_is_told_the_level_and_clients_are_not_believed(self):
        self.nginx.get("/pay", {"weir-degrade": "2"})
        self.assertEqual(self.degrade_seen(), "0")
        self.nginx.get("/search")
        self.assertIsNone(self.degrade_seen())
        self.switch("search", "degrade", "1")
        self.nginx.get("/search", {"Weir-Degrade": "0"})
        self.assertEqual(self.degrade_seen(), "1")

    def test_what_cannot_be_is_refused_with_a_reason(self):
        self.assertIn("did you mean `search`", self.switch("serch", "pause", status=2))
        self.assertIn("has 0 degrade levels", self.switch("pay", "degrade", "1", status=2))
        self.assertIn("has no unit", self.switch("pay", "pause", "--for", "10", status=2))
        self.assertIn("without effect", self.switch("health", "pause"))
        self.assertEqual(self.nginx.get("/health").status, 200)
        self.assertIn("no such segment", self.weir("switch", "never-ran", status=1))

    def drill(self, level, status):
        with Flood(self.nginx.port(), "/search", clients=4, rate=400):
            return json.loads(self.weir(
                "drill", self.service, "search", "--level", level, "--share", "50%",
                "--for", "1s", "--json", status=status).split("\n")[0])

    def test_a_drill_finds_that_a_branch_works_and_ends(self):
        report = self.drill("1", 0)
        self.assertEqual(report["end"], "time")
        self.assertEqual(report["verdict"], "works")
        self.assertGreater(report["drilled"]["ok"], 30)
        self.assertGreater(report["others"]["ok"], 30)
        self.nginx.get("/search")
        self.assertIsNone(self.degrade_seen())

    def test_a_drill_finds_that_a_branch_is_broken(self):
        report = self.drill("2", 1)
        self.assertEqual(report["verdict"], "worse")
        self.assertEqual(report["drilled"]["ok"], 0)
        self.assertEqual(report["others"]["failed_ratio"], 0)


if __name__ == "__main__":
    runner.main("e2e_switch_test")
