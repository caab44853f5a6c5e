"""Several nginx workers, reloads, and workers that die."""

import os
import pathlib
import pwd
import signal
import socket
import subprocess
import time
import unittest

from harness import BUILD, Flood, Nginx, Service, drained, region, until
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

    def nginx(self, workers, limit, backend_workers=1000, more="", start=True,
              **options):
        WorkersTest.serial += 1
        self.service = f"e2e-w-{os.getpid()}-{WorkersTest.serial}"
        self.backend = Service(backend_workers)
        self.addCleanup(self.backend.close)
        self.limit = limit
        nginx = Nginx(SERVER % (self.backend.address, more),
                      {"shop.toml": self.policy()}, workers=workers, **options)
        self.addCleanup(nginx.stop)
        return nginx.start() if start else nginx

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

    def test_an_idle_worker_gives_its_spare_places_to_a_busy_one(self):
        # Nine requests through one connection, so one worker, need all places.
        nginx = self.nginx(2, FIXED.format(n=9), more="""}
  server { listen 127.0.0.1:{port1} http2;
    location / { weir api; proxy_pass http://service; }""")
        with Flood(nginx.port(), "/work?ms=2", clients=8) as flood:
            until(lambda: len(flood.results) > 300, "both workers have had places")
        drained(self.service)
        self.addCleanup(nginx.open_http2(["/hold"] * 9, n=1).close)
        until(lambda: self.backend.held() == 9, "all nine run")

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
        # One of them at the level from which Debian's log begins.
        until(lambda: nginx.errors().count("changed and is in force") == 2, "both say so")
        self.assertRegex(nginx.errors(), r"\[error\].*changed and is in force")

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


class ShardTest(WorkersTest):
    """Who has no shard does not guard; so shards come back, and are tried for again."""

    def hold_all(self, policy):
        holder = subprocess.Popen([BUILD / "tests/e2e/shard_holder", policy],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(holder.communicate)
        self.assertGreater(int(holder.stdout.readline()), 60)
        return holder

    def test_a_worker_without_a_shard_claims_one_when_there_is_one(self):
        nginx = self.nginx(2, FIXED.format(n=3), start=False)
        holder = self.hold_all(nginx.folder / "shop.toml")
        nginx.start()
        self.assertEqual(nginx.get("/").status, 200)
        self.assertEqual(nginx.logged(1)[0]["decision"], "off")
        self.assertEqual(nginx.errors().count("weir is off in this worker"), 2)
        holder.communicate()
        until(lambda: nginx.errors().count("weir is on in this worker") == 2, "both are on")
        nginx.get("/")
        self.assertEqual(nginx.logged(2)[1]["decision"], "admit")
        self.assertEqual({w["pid"] for w in region(self.service)["workers"]},
                         set(nginx.workers()))

    def upgraded(self, nginx):
        s = nginx.open("/upgrade", "Upgrade: echo\r\nConnection: upgrade\r\n")
        self.addCleanup(s.close)
        self.assertIn(b"101", s.recv(4096))
        return s

    MORE = """location /upgrade { weir api; proxy_set_header Upgrade $http_upgrade;
        proxy_set_header Connection upgrade; proxy_pass http://service; }"""

    def only_new_workers(self, nginx, old):
        until(lambda: len(set(nginx.workers()) - old) == 1, "a new worker")
        new = set(nginx.workers()) - old
        until(lambda: {w["pid"] for w in region(self.service)["workers"]} == new,
              "the old ones have given their shards back")

    def test_old_workers_that_only_have_websockets_give_their_shards_back(self):
        nginx = self.nginx(1, FIXED.format(n=3), more=self.MORE)
        sockets, old = [], set()
        for _ in range(3):
            sockets.append(self.upgraded(nginx))
            old |= set(nginx.workers())
            nginx.ask_reload()
            self.only_new_workers(nginx, old)
        for s in sockets:
            s.sendall(b"hello")
            self.assertEqual(s.recv(100), b"hello")
        self.assertEqual(nginx.get("/").status, 200)

    def test_a_late_request_in_an_old_worker_is_guarded(self):
        nginx = self.nginx(1, FIXED.format(n=3), more=self.MORE)
        self.upgraded(nginx)
        late = socket.create_connection(("127.0.0.1", nginx.port()))
        self.addCleanup(late.close)
        body = nginx.open("/work?ms=0", "Content-Length: 6\r\n", method="POST")
        self.addCleanup(body.close)
        late.sendall(b"GET /late HTTP/1.1\r\nHost: x\r\n")
        body.sendall(b"123")
        time.sleep(.1)
        old = set(nginx.workers())
        nginx.ask_reload()
        self.only_new_workers(nginx, old)
        before = self.offered()
        late.sendall(b"\r\n")
        self.assertIn(b"200", late.recv(1000))
        body.sendall(b"456")
        self.assertIn(b"200", body.recv(1000))
        self.assertEqual(self.offered(), before + 2)
        self.only_new_workers(nginx, old)

    def test_a_check_says_when_there_may_be_more_workers_than_shards(self):
        nginx = self.nginx(1000, FIXED.format(n=3), start=False)
        status, text = nginx.check()
        self.assertEqual(status, 0)
        self.assertRegex(text, r"1000 workers, and after a reload as many old ones, are more "
                               r"than the \d+ that weir guards at a time")


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
