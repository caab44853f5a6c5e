"""Several nginx workers, reloads, and workers that die."""

import os
import pathlib
import pwd
import signal
import time
import unittest

from harness import Flood, Nginx, Service, drained, region, until
import runner

POLICY = """service = "{service}"
[limit]
{limit}
[deadline]
default = "2s"
from = ["header:x-timeout"]
[criticality]
from = ["header:x-criticality"]
[trust]
networks = ["127.0.0.0/8"]
[resource.api]
[resource.paused]
paused = true
"""

SERVER = """
  weir_policy shop.toml;
  upstream service { server %s; keepalive 64; }
  server {
    listen 127.0.0.1:{port} backlog=4096 reuseport;
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    location / { weir api; proxy_pass http://service; }
%s
  }
"""

FIXED = "floor = {n}\nceiling = {n}"


class WorkersTest(unittest.TestCase):
    serial = 0

    def nginx(self, workers, limit, backend_workers=1000, more="", **options):
        WorkersTest.serial += 1
        self.service = f"e2e-w-{os.getpid()}-{WorkersTest.serial}"
        self.backend = Service(backend_workers)
        self.addCleanup(self.backend.close)
        self.limit = limit
        nginx = Nginx(SERVER % (self.backend.address, more),
                      {"shop.toml": self.policy()}, workers=workers, **options)
        self.addCleanup(nginx.stop)
        return nginx.start()

    def policy(self, **changes):
        return POLICY.format(service=self.service, limit=changes.get("limit", self.limit))

    def offered(self):
        return sum(region(self.service)["offered_total"])


class LimitTest(WorkersTest):

    def share(self, workers):
        nginx = self.nginx(workers, FIXED.format(n=6))
        with Flood(nginx.port(), "/work?ms=5", clients=48) as flood:
            until(lambda: len(flood.results) > 600, "600 answers")
            busy = [w for w in region(self.service)["workers"] if w["inflight"] + w["waiting"]]
        seen = drained(self.service)
        self.assertEqual(len(seen["workers"]), workers)
        self.assertEqual(len(busy), workers)
        self.assertEqual(flood.errors, [])
        self.assertGreater(self.backend.peak, 4)
        self.assertLessEqual(self.backend.peak, 6)

    def test_one_worker_keeps_the_limit(self):
        self.share(1)

    def test_two_workers_share_one_limit(self):
        self.share(2)

    def test_four_workers_share_one_limit(self):
        self.share(4)

    def test_workers_of_another_user_share_the_region(self):
        if os.getuid() != 0:
            self.skipTest("only root can start workers of another user")
        try:
            pwd.getpwnam("www-data")
        except KeyError:
            self.skipTest("no user www-data")
        nginx = self.nginx(2, FIXED.format(n=6), user="www-data")
        self.assertEqual(nginx.get("/").status, 200)
        for pid in nginx.workers():
            self.assertNotEqual(os.stat(f"/proc/{pid}").st_uid, 0)
        self.assertEqual(os.stat(f"/dev/shm/weir.{self.service}").st_mode & 0o777, 0o600)
        self.assertEqual({w["pid"] for w in drained(self.service)["workers"]},
                         set(nginx.workers()))

    def test_under_overload_four_workers_shed_the_least_critical_first(self):
        # A service of 4 workers x 40 ms, 100/s, is offered five times that; an
        # eighth of it is vital and fits.
        nginx = self.nginx(4, "workers = 4", backend_workers=4)
        classes = ["vital", "important", "deferrable", "sheddable"]
        headers = [f"x-criticality: {c}\r\nx-timeout: 1s\r\n" for c in classes]
        mixed = headers + headers[1:] + headers[3:]
        kinds = [0, 1, 2, 3, 1, 2, 3, 3]
        with Flood(nginx.port(), "/work?ms=40", clients=400, headers=mixed, rate=500) as flood:
            time.sleep(3)
            begin = len(flood.results)
            time.sleep(4)
            results = flood.results[begin:]
        answered = [0] * 4
        offered = [0] * 4
        for n, status in results:
            offered[kinds[n]] += 1
            answered[kinds[n]] += status == 200
        served = [a / o for a, o in zip(answered, offered)]
        self.assertEqual(flood.errors, [])
        self.assertGreater(served[0], .9, (answered, offered))
        self.assertLess(served[3], .1, (answered, offered))
        self.assertGreater(served[0], served[1])
        self.assertGreaterEqual(served[1] + .02, served[2])
        self.assertGreaterEqual(served[2] + .02, served[3])
        drained(self.service)


class ReloadTest(WorkersTest):

    def test_a_reload_keeps_what_was_learned_and_counted(self):
        nginx = self.nginx(2, "workers = 8")
        with Flood(nginx.port(), "/work?ms=10", clients=16) as flood:
            until(lambda: len(flood.results) > 500, "500 answers")
        before = drained(self.service)
        self.assertGreater(before["capacity_per_s"], 0)
        nginx.reload()
        after = region(self.service)
        self.assertEqual(after["offered_total"], before["offered_total"])
        self.assertEqual(after["limit"], before["limit"])
        # What the workers had measured and not yet handed over may still move them.
        for learned in ("capacity_per_s", "base_latency_us"):
            self.assertAlmostEqual(after[learned] / before[learned], 1, delta=.2)
        self.assertEqual(nginx.get("/").status, 200)

    def test_a_reload_under_load_loses_no_request(self):
        nginx = self.nginx(2, "workers = 8", backend_workers=8)
        with Flood(nginx.port(), "/work?ms=5", clients=16,
                   headers=["Connection: close\r\n"]) as flood:
            # Each connection carries one request: nginx may close one that is
            # kept alive just as its next request is on the way.
            for _ in range(5):
                time.sleep(0.3)
                nginx.reload()
        statuses = {status for _, status in flood.results}
        self.assertEqual((flood.errors, statuses), ([], {200}))
        seen = drained(self.service)
        self.assertEqual(len(seen["workers"]), 2)
        self.assertEqual(sum(seen["offered_total"]), len(flood.results))

    def test_a_reload_takes_the_new_policy(self):
        nginx = self.nginx(1, "workers = 8")
        nginx.write_policy("shop.toml", self.policy(limit=FIXED.format(n=3)))
        nginx.reload()
        nginx.get("/")
        self.assertEqual(nginx.logged(1)[0]["limit"], "3")

    def test_a_reload_of_a_bad_policy_keeps_the_old_one_at_work(self):
        nginx = self.nginx(1, FIXED.format(n=3))
        workers = nginx.workers()
        nginx.write_policy("shop.toml", self.policy(limit="floor = -1"))
        nginx.ask_reload()
        until(lambda: "the policy" in nginx.errors() and "is refused" in nginx.errors(),
              "the complaint is logged")
        self.assertEqual(nginx.get("/").status, 200)
        self.assertEqual(nginx.workers(), workers)
        self.assertEqual(nginx.logged(1)[0]["limit"], "3")

    def test_a_changed_file_is_followed_without_a_reload(self):
        nginx = self.nginx(2, FIXED.format(n=3))
        workers = nginx.workers()
        nginx.write_policy("shop.toml", self.policy(limit=FIXED.format(n=5)))
        def all_follow():
            for _ in range(8):
                nginx.get("/")
            return {row["limit"] for row in nginx.access()[-8:]} == {"5"}
        until(all_follow, "both workers apply the new limit")
        self.assertEqual(nginx.workers(), workers)
        until(lambda: nginx.errors().count("changed and is in force") == 2, "both say so")

    def test_a_bad_file_is_complained_of_once_and_the_old_policy_stays(self):
        nginx = self.nginx(2, FIXED.format(n=3))
        nginx.write_policy("shop.toml", self.policy(limit="floor = -1"))
        until(lambda: "shop.toml:3:9: error" in nginx.errors(), "the complaint is logged")
        time.sleep(3)  # Long enough to complain of it again.
        lines = [l for l in nginx.errors().splitlines() if "shop.toml:3:9: error" in l]
        self.assertEqual(len([l for l in lines if "[error]" in l]), 1)
        nginx.get("/")
        self.assertEqual(nginx.logged(1)[0]["limit"], "3")

    def test_a_file_without_a_resource_in_use_is_refused(self):
        nginx = self.nginx(1, FIXED.format(n=3))
        nginx.write_policy("shop.toml", self.policy().replace("[resource.api]", "[resource.apis]"))
        until(lambda: "has no resource `api`, which is used in" in nginx.errors(),
              "the complaint is logged")
        self.assertEqual(nginx.get("/").status, 200)

    def test_a_resource_keeps_its_meaning_when_the_file_is_reordered(self):
        nginx = self.nginx(1, FIXED.format(n=3), more="location /p { weir paused; }")
        text = self.policy(limit=FIXED.format(n=4))
        text = text.replace("[resource.api]\n", "[resource.aaa]\n") + "[resource.api]\n"
        nginx.write_policy("shop.toml", text)
        def followed():
            nginx.get("/")
            return [row["limit"] for row in nginx.access()][-1:] == ["4"]
        until(followed, "the new policy is in force")
        self.assertEqual(nginx.get("/").status, 200)
        self.assertEqual(nginx.get("/p").status, 503)


class DeathTest(WorkersTest):

    def test_ten_killed_workers_leave_nothing_behind(self):
        nginx = self.nginx(2, FIXED.format(n=8))
        with Flood(nginx.port(), "/work?ms=20", clients=32) as flood:
            for _ in range(10):
                until(lambda: len(nginx.workers()) == 2, "two workers")
                def busy():
                    return [w for w in region(self.service)["workers"]
                            if w["inflight"] and w["pid"] in nginx.workers()]
                victim = until(busy, "a worker has requests")[0]["pid"]
                os.kill(victim, signal.SIGKILL)
                killed = time.monotonic()
                until(lambda: victim not in
                      {w["pid"] for w in region(self.service)["workers"]},
                      "the dead worker's shard is free")
                self.assertLess(time.monotonic() - killed, 1)
        seen = drained(self.service)
        self.assertGreater(seen["reclaimed_total"], 0)
        # Only what the dead held was lost, and nothing is refused for it.
        self.assertLessEqual(len(flood.errors), 10 * 32)
        self.assertEqual({s for _, s in flood.results} - {0}, {200})
        for _ in range(50):
            self.assertEqual(nginx.get("/").status, 200)
        with Flood(nginx.port(), "/work?ms=20", clients=32) as flood:
            until(lambda: self.backend.running == 8, "all places are in use again")
        self.assertEqual({s for _, s in flood.results}, {200})

    def test_a_replaced_worker_has_the_policy_of_now(self):
        nginx = self.nginx(1, FIXED.format(n=3))
        nginx.write_policy("shop.toml", self.policy(limit=FIXED.format(n=5)))
        until(lambda: "changed and is in force" in nginx.errors(), "the file is followed")
        old = nginx.workers()
        os.kill(old[0], signal.SIGKILL)
        until(lambda: nginx.workers() and nginx.workers() != old, "a new worker")
        until(lambda: len(region(self.service)["workers"]) == 1, "it has a shard")
        nginx.get("/")
        self.assertEqual(nginx.logged(1)[-1]["limit"], "5")


if __name__ == "__main__":
    runner.main("e2e_workers_test")
