"""What ngx_http_weir_module does to a request, with real nginx."""

import grp
import os
import pathlib
import re
import socket
import subprocess
import tempfile
import time
import unittest

from harness import BUILD, ROOT, Flood, Nginx, Service, drained, region, until
import runner

# One place under the limit, so that a held request makes the next one wait.
ONE = """service = "{service}"
[limit]
floor = 1
ceiling = 1
[deadline]
default = "10s"
from = ["header:x-timeout", "header:grpc-timeout"]
[criticality]
from = ["header:x-criticality", "baggage:criticality"]
[trust]
networks = ["127.0.0.0/8"]
[resource.api]
[resource.other]
[resource.feed]
stream = true
[resource.health]
exempt = true
[resource.paused]
paused = true
"""

SERVER = """
  weir_policy shop.toml;
  upstream service { server %s; keepalive 16; }
  server {
    listen 127.0.0.1:{port};
    listen 127.0.0.1:{port1} http2;
    proxy_http_version 1.1;
    proxy_set_header Connection "";
%s
  }
"""


class NginxTest(unittest.TestCase):
    serial = 0

    def setUp(self):
        NginxTest.serial += 1
        self.service = f"e2e-{os.getpid()}-{NginxTest.serial}"
        self.backend = Service()
        self.addCleanup(self.backend.close)

    def nginx(self, locations, policy=ONE, http=SERVER, start=True, **options):
        nginx = Nginx(http % (self.backend.address, locations),
                      {"shop.toml": policy.format(service=self.service)}, **options)
        self.addCleanup(nginx.stop)
        return nginx.start() if start else nginx

    def proxy(self, **options):
        return self.nginx("location / { weir api; proxy_pass http://service; }", **options)

    def hold(self, nginx, path="/hold", headers=""):
        """Sends a request that the service keeps until it is released."""
        before = self.backend.held()
        s = nginx.open(path, headers)
        self.addCleanup(s.close)
        until(lambda: self.backend.held() == before + 1, "the request is held")
        return s

    def waiting(self, n):
        until(lambda: region(self.service)["waiting"] == n, f"{n} requests wait")

    def counted(self, name):
        return sum(region(self.service)[name])


class DirectivesTest(NginxTest):

    def test_a_location_inherits_what_is_set_around_it(self):
        nginx = self.nginx("""
    weir other;
    location / { proxy_pass http://service; }
    location /mine { weir paused; proxy_pass http://service; }
    location /outer { weir paused; location /outer/in { proxy_pass http://service; } }
    location /off { weir off; location /off/in { proxy_pass http://service; }
                    proxy_pass http://service; }""")
        for path in ("/x", "/mine", "/outer/in", "/off", "/off/in"):
            nginx.get(path)
        rows = {row["uri"]: row for row in nginx.logged(5)}
        self.assertEqual(rows["/x"]["decision"], "admit")
        self.assertEqual(rows["/mine"]["reason"], "paused")
        self.assertEqual(rows["/outer/in"]["reason"], "paused")
        self.assertEqual(rows["/off"]["decision"], "off")
        self.assertEqual(rows["/off/in"]["decision"], "off")
        self.assertEqual(self.counted("offered_total"), 3)

    def test_two_policy_files_are_two_services(self):
        second = self.service + "-b"
        nginx = self.nginx("""
    location / { weir api; proxy_pass http://service; }
    location /b { weir_policy b.toml; weir only; proxy_pass http://service; }""",
                           start=False)
        nginx.write_policy("b.toml", f'service = "{second}"\n[resource.only]\n')
        nginx.start()
        nginx.get("/")
        nginx.get("/b")
        nginx.get("/b")
        self.assertEqual(self.counted("admitted_total"), 1)
        self.assertEqual(sum(region(second)["admitted_total"]), 2)

    def test_a_check_shows_all_complaints_with_their_places(self):
        nginx = self.proxy(policy="""service = "{service}"
[limit]
floor = 64
ceiling = 32
[resource.api]
criticalty = "vital"
""", start=False)
        status, text = nginx.check()
        self.assertNotEqual(status, 0)
        self.assertIn("shop.toml:3:9: error: `limit.floor` is above", text)
        self.assertIn("shop.toml:6:1: error: ", text)
        self.assertIn("fix: ", text)
        self.assertRegex(text, r'the policy ".*shop.toml" is refused in .*nginx.conf:\d+')
        marked, mark = re.search(r"(.*\| floor = 64)\n(.*\|\s+\^\^)\n", text).groups()
        self.assertEqual(marked.index("64"), mark.index("^^"))

    def test_a_check_creates_no_region(self):
        nginx = self.proxy(start=False)
        self.assertEqual(nginx.check()[0], 0)
        self.assertFalse(pathlib.Path(f"/dev/shm/weir.{self.service}").exists())

    def test_an_unknown_resource_is_refused_with_the_nearest_name(self):
        nginx = self.nginx("location / { weir helth; }", start=False)
        status, text = nginx.check()
        self.assertNotEqual(status, 0)
        self.assertIn("has no resource `helth`; did you mean `health`?", text)
        self.assertRegex(text, r"nginx.conf:\d+")

    def test_a_resource_needs_a_policy(self):
        nginx = self.nginx("location / { weir api; }",
                           http=SERVER.replace("weir_policy shop.toml;", ""), start=False)
        status, text = nginx.check()
        self.assertNotEqual(status, 0)
        self.assertIn("`weir api` needs a `weir_policy`", text)

    def test_an_unreadable_policy_is_refused(self):
        nginx = self.nginx("", http=SERVER.replace("shop.toml", "missing.toml"), start=False)
        status, text = nginx.check()
        self.assertNotEqual(status, 0)
        self.assertIn("missing.toml", text)

    def test_two_policies_of_one_service_are_refused(self):
        nginx = self.nginx("location / { weir_policy b.toml; weir api; }", start=False)
        nginx.write_policy("b.toml", ONE.format(service=self.service))
        status, text = nginx.check()
        self.assertNotEqual(status, 0)
        self.assertIn(f"both of the service `{self.service}`", text)

    def test_the_segment_may_be_read_by_whom_weir_readers_names(self):
        segment = pathlib.Path(f"/dev/shm/weir.{self.service}")
        for directive, mode in (("", 0o600), ("weir_readers all;", 0o644),
                                ("weir_readers daemon;", 0o640)):
            nginx = self.nginx("location / { weir api; }", http=directive + SERVER)
            self.assertEqual(segment.stat().st_mode & 0o777, mode)
            if mode == 0o640:
                self.assertEqual(segment.stat().st_gid, grp.getgrnam("daemon").gr_gid)
            nginx.ask_end()
        nginx = self.nginx("", http="weir_readers nobody-such;" + SERVER, start=False)
        status, text = nginx.check()
        self.assertNotEqual(status, 0)
        self.assertIn("there is no group `nobody-such`", text)


class UpgradeTest(NginxTest):
    """A segment that this build cannot use stops no site."""

    def segment(self):
        return pathlib.Path(f"/dev/shm/weir.{self.service}")

    def make_it_of_another_layout(self):
        """As another build would have left it: its version is another."""
        with open(self.segment(), "r+b") as segment:
            segment.seek(8)
            segment.write(b"\x01")

    def test_one_that_nobody_uses_is_replaced(self):
        nginx = self.proxy()
        nginx.get("/")
        nginx.ask_end()
        self.make_it_of_another_layout()
        nginx = self.proxy(start=False)
        status, text = nginx.check()
        self.assertEqual(status, 0)
        self.assertIn("that nobody uses will be replaced", text)
        nginx.start()
        nginx.get("/")
        self.assertEqual(nginx.logged(1)[0]["decision"], "admit")
        self.assertEqual(self.counted("offered_total"), 1)

    def test_one_in_use_lets_nginx_start_unguarded_and_loud(self):
        old = self.proxy()
        self.make_it_of_another_layout()
        nginx = self.proxy(start=False)
        status, text = nginx.check()
        self.assertEqual(status, 0)
        self.assertIn("a start would go on without weir", text)
        nginx.start()
        self.assertEqual(nginx.get("/").status, 200)
        self.assertEqual(nginx.logged(1)[0]["decision"], "off")
        self.assertRegex(nginx.errors(), r"\[alert\].*IS NOT GUARDED")
        # It may be reconfigured in the meantime, and is guarded when the old one has gone.
        nginx.reload()
        self.assertEqual(nginx.errors().count("IS NOT GUARDED"), 2)
        old.ask_end()
        nginx.reload()
        nginx.get("/")
        self.assertEqual(nginx.logged(2)[1]["decision"], "admit")

    def test_a_reload_that_could_not_guard_any_more_is_refused(self):
        nginx = self.proxy()
        workers = nginx.workers()
        self.make_it_of_another_layout()
        nginx.ask_reload()
        until(lambda: "[emerg]" in nginx.errors(), "it is refused")
        nginx.get("/")
        self.assertEqual(nginx.workers(), workers)
        self.assertEqual(nginx.logged(1)[0]["decision"], "admit")

    def test_a_file_that_is_no_region_is_left_alone(self):
        nginx = self.proxy(start=False)
        self.segment().write_bytes(b"something else" * 1000)
        self.segment().chmod(0o600)
        self.assertIn("a start would go on without weir", nginx.check()[1])
        nginx.start()
        self.assertEqual(nginx.get("/").status, 200)
        self.assertIn("IS NOT GUARDED", nginx.errors())
        self.assertEqual(self.segment().read_bytes()[:14], b"something else")


class DecisionTest(NginxTest):

    def test_an_admitted_request_is_answered_and_gives_its_place_back(self):
        nginx = self.proxy()
        self.assertEqual(nginx.get("/").status, 200)
        row = nginx.logged(1)[0]
        self.assertEqual((row["decision"], row["reason"]), ("admit", "room"))
        self.assertEqual(row["queue_ms"], "0.000")
        self.assertEqual(row["limit"], "1")
        self.assertEqual(sum(drained(self.service)["finished_ok_total"]), 1)

    def test_a_request_waits_for_a_place_and_says_how_long(self):
        nginx = self.proxy()
        self.hold(nginx)
        second = nginx.open("/work?ms=0")
        self.waiting(1)
        self.assertEqual(self.backend.hits, ["/hold"])
        self.backend.release()
        self.assertIn(b"200", second.recv(100))
        row = [r for r in nginx.logged(2) if r["uri"] == "/work"][0]
        self.assertEqual((row["decision"], row["reason"]), ("admit", "waited"))
        self.assertRegex(row["queue_ms"], r"^\d+\.\d{3}$")
        self.assertGreater(float(row["queue_ms"]), 0)
        drained(self.service)

    def test_a_paused_resource_answers_503_with_its_reason_and_stays_connected(self):
        nginx = self.nginx("location / { weir paused; proxy_pass http://service; }")
        s = nginx.open("/a", "Content-Length: 5\r\n", method="POST")
        s.sendall(b"12345")
        first = s.recv(4096).decode()
        self.assertIn("503", first)
        self.assertIn("weir-reason: paused", first)
        self.assertGreaterEqual(int(re.search(r"Retry-After: (\d+)", first)[1]), 1)
        self.assertNotIn("Connection: close", first)
        s.sendall(b"GET /b HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertIn("503", s.recv(4096).decode())
        self.assertEqual(self.backend.hits, [])

    def test_a_refusal_does_not_wait_for_the_body(self):
        nginx = self.nginx("location / { weir paused; weir_request_buffering off; "
                           "proxy_pass http://service; }")
        s = nginx.open("/", "Content-Length: 1000000\r\n", method="POST")
        self.assertIn(b"503", s.recv(4096))

    def test_a_deadline_that_has_passed_is_504_without_retry_after(self):
        nginx = self.proxy()
        response = nginx.get("/", {"x-timeout": "0s"})
        self.assertEqual(response.status, 504)
        self.assertEqual(response.getheader("weir-reason"), "deadline")
        self.assertIsNone(response.getheader("Retry-After"))

    def test_a_request_that_waits_leaves_at_its_deadline(self):
        nginx = self.proxy()
        self.hold(nginx)
        response = nginx.get("/", {"x-timeout": "100ms"})
        self.assertIn(response.status, (503, 504))
        self.assertEqual(response.getheader("weir-reason"), "deadline")
        self.assertEqual(self.backend.hits, ["/hold"])

    def test_the_policys_status_is_used_for_the_servers_shortage(self):
        nginx = self.proxy(policy=ONE + "[answer]\nstatus = 429\n")
        with Flood(nginx.port(), "/work?ms=5", clients=100,
                   headers=["x-timeout: 300ms\r\n"]) as flood:
            until(lambda: sum(self.counted(f"shed_{reason}_total")
                              for reason in ("level", "limit")), "some are shed")
        self.assertIn(429, {status for _, status in flood.results})
        statuses = {row["status"] for row in nginx.access()
                    if row["reason"] in ("level", "limit")}
        self.assertEqual(statuses, {429})

    def test_what_exceeds_a_quota_is_429_with_the_time_to_come_back(self):
        # By the calendar, which nginx must have told the guard.
        nginx = self.proxy(policy=ONE + '[resource.api.quota]\ncalls = 2\nwindow = "month"\n')
        responses = [nginx.get("/a") for _ in range(4)]
        self.assertEqual([r.status for r in responses], [200, 200, 429, 429])
        self.assertEqual(responses[2].getheader("weir-reason"), "quota")
        self.assertGreaterEqual(int(responses[2].getheader("Retry-After")), 1)
        self.assertEqual(self.counted("shed_quota_total"), 2)
        self.assertEqual(self.backend.hits, ["/a", "/a"])

    def test_an_exempt_resource_passes_a_full_service(self):
        nginx = self.nginx("""
    location / { weir api; proxy_pass http://service; }
    location = /healthz { weir health; proxy_pass http://service; }""")
        self.hold(nginx)
        self.assertEqual(nginx.get("/healthz").status, 200)
        self.assertEqual(nginx.logged(1)[0]["reason"], "exempt")
        self.assertEqual(region(self.service)["inflight"], 1)

    def test_criticality_is_read_from_baggage_and_headers(self):
        nginx = self.proxy()
        nginx.get("/", {"baggage": "a=1, criticality=vital;p=q"})
        nginx.get("/", {"x-criticality": "SHEDDABLE"})
        nginx.get("/", {"x-criticality": "nonsense"})
        self.assertEqual(region(self.service)["offered_total"], [1, 1, 0, 1])

    def test_headers_are_believed_from_trusted_networks_only(self):
        nginx = self.proxy(policy=ONE.replace("127.0.0.0/8", "192.0.2.0/24"))
        self.assertEqual(nginx.get("/", {"x-criticality": "vital", "x-timeout": "0s"}).status, 200)
        self.assertEqual(region(self.service)["offered_total"], [0, 1, 0, 0])

    def test_a_client_behind_realip_is_the_one_to_trust(self):
        nginx = self.nginx("""
    set_real_ip_from 127.0.0.1; real_ip_header X-Real-IP;
    location / { weir api; proxy_pass http://service; }""")
        nginx.get("/", {"x-criticality": "vital", "X-Real-IP": "192.0.2.7"})
        nginx.get("/", {"x-criticality": "vital", "X-Real-IP": "127.0.0.9"})
        self.assertEqual(region(self.service)["offered_total"], [1, 1, 0, 0])

    def test_variables_are_read_whoever_asks(self):
        nginx = self.nginx("""
    location / { weir api; proxy_pass http://service; }""", http="""
  map $arg_who $class { vip vital; default sheddable; }""" + SERVER,
            policy=ONE.replace('"header:x-criticality"', '"variable:class"')
                      .replace("127.0.0.0/8", "192.0.2.0/24"))
        nginx.get("/?who=vip")
        nginx.get("/?who=other")
        self.assertEqual(region(self.service)["offered_total"], [1, 0, 0, 1])


class InstallTest(unittest.TestCase):

    def test_what_the_page_says_installs_the_module(self):
        page = (ROOT / "docs/nginx.md").read_text()
        block = page.split("## Install")[1].split("\n\n")[2]
        lines = [line.strip() for line in block.splitlines()]
        self.assertTrue(lines[0].startswith("cmake "), lines)
        self.assertEqual(lines[-1], "nginx -t")
        with tempfile.TemporaryDirectory() as folder:
            # What Debian's nginx brings: a link to a folder that is not there.
            root = pathlib.Path(folder)
            (root / "etc/nginx/modules-enabled").mkdir(parents=True)
            (root / "usr/share/nginx").mkdir(parents=True)
            (root / "usr/share/nginx/modules").symlink_to("../../lib/nginx/modules")
            (root / "etc/nginx/nginx.conf").write_text(
                f"include {root}/etc/nginx/modules-enabled/*.conf; pid {root}/pid;"
                "error_log stderr; events {} http { weir off; access_log off; }")
            for line in lines[1:]:
                line = line.replace("build/release", str(BUILD))
                line = re.sub(r" /(usr|etc)/", rf" {root}/\1/", line)
                line = line.replace("nginx -t", f"nginx -t -e stderr -p {root}/usr/share/nginx "
                                                f"-c {root}/etc/nginx/nginx.conf")
                done = subprocess.run(line, shell=True, text=True, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT)
                self.assertEqual(done.returncode, 0, f"{line}\n{done.stdout}")


class LastTest(NginxTest):
    """The decision falls last: nothing that waits for others holds a place."""

    def test_a_delay_by_limit_req_holds_no_place(self):
        nginx = self.nginx("""
    location / { weir api; proxy_pass http://service; }
    location /slow { limit_req zone=all burst=9; weir api; proxy_pass http://service; }""",
                           http="limit_req_zone $server_port zone=all:64k rate=1r/m;" + SERVER)
        self.assertEqual(nginx.get("/slow").status, 200)
        delayed = [nginx.open("/slow") for _ in range(3)]
        for s in delayed:
            self.addCleanup(s.close)
        until(lambda: nginx.errors().count("delaying request") == 3, "3 are delayed")
        self.assertEqual(nginx.get("/").status, 200)
        self.assertEqual(self.counted("offered_total"), 2)
        self.assertEqual(nginx.logged(2)[1]["reason"], "room")

    def test_a_wrong_password_that_is_answered_late_holds_no_place(self):
        nginx = self.nginx("""
    location / { weir api; proxy_pass http://service; }
    location /closed { weir api; auth_basic x; auth_basic_user_file users; auth_delay 60s;
                       proxy_pass http://service; }""", start=False)
        (nginx.folder / "users").write_text("")
        nginx.start()
        self.addCleanup(nginx.open("/closed", "Authorization: Basic eDp5\r\n").close)
        until(lambda: "delaying unauthorized" in nginx.errors(), "the answer is delayed")
        self.assertEqual(nginx.get("/").status, 200)
        self.assertEqual(self.counted("offered_total"), 1)

    def test_a_slow_authority_is_no_slow_service(self):
        nginx = self.nginx("""
    location / { weir api; auth_request /auth; proxy_pass http://service; }
    location = /auth { proxy_pass http://service/hold; }""")
        client = nginx.open("/work?ms=0")
        self.addCleanup(client.close)
        until(lambda: self.backend.held() == 1, "the authority is asked")
        self.assertEqual(self.counted("offered_total"), 0)
        self.backend.release()
        self.assertIn(b"200", client.recv(1000))
        self.assertEqual(sum(drained(self.service)["finished_ok_total"]), 1)

    def test_a_default_budget_begins_when_the_body_is_here(self):
        nginx = self.nginx("location / { weir api; client_body_timeout 9s; "
                           "proxy_pass http://service; }",
                           policy=ONE.replace('"10s"', '"100ms"'))
        def upload(headers):
            slow = nginx.open("/work?ms=0", headers + "Content-Length: 6\r\n", method="POST")
            slow.sendall(b"123")
            time.sleep(.3)
            slow.sendall(b"456")
            return slow.recv(1000).decode()
        self.assertIn("200", upload(""))
        # Who states one wants the answer then.
        self.assertIn("weir-reason: deadline", upload("x-timeout: 100ms\r\n"))
        self.assertEqual(self.backend.bodies, [b"123456"])

    def test_a_slow_chunked_upload_holds_no_place(self):
        nginx = self.nginx("location / { weir api; proxy_pass http://service; }",
                           policy=ONE.replace('"10s"', '"100ms"'))
        slow = nginx.open("/work?ms=0", "Transfer-Encoding: chunked\r\n", method="PUT")
        slow.sendall(b"3\r\n123\r\n")
        time.sleep(.3)
        self.assertEqual(nginx.get("/").status, 200)
        self.assertEqual(self.counted("offered_total"), 1)
        slow.sendall(b"3\r\n456\r\n0\r\n\r\n")
        self.assertIn(b"200", slow.recv(1000))
        self.assertEqual(self.backend.bodies, [b"", b"123456"])
        drained(self.service)

    def test_a_slow_upload_over_http2_holds_no_place(self):
        nginx = self.nginx("location / { weir api; proxy_pass http://service; }",
                           policy=ONE.replace('"10s"', '"100ms"'))
        curl = subprocess.Popen(
            ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--http2-prior-knowledge",
             "-T", "-", f"http://127.0.0.1:{nginx.port(1)}/work?ms=0"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        curl.stdin.write(b"123")
        curl.stdin.flush()
        time.sleep(.3)
        self.assertEqual(nginx.get("/").status, 200)
        self.assertEqual(self.counted("offered_total"), 1)
        self.assertEqual(curl.communicate(b"456", timeout=15)[0], b"200")
        self.assertEqual(self.backend.bodies[1], b"123456")
        drained(self.service)


class BodyTest(NginxTest):
    """What is refused is refused unread, and what is read nginx would read, too."""

    def test_a_paused_resource_refuses_before_the_body(self):
        nginx = self.nginx("location / { weir paused; proxy_pass http://service; }")
        s = nginx.open("/", "Content-Length: 1000000\r\nExpect: 100-continue\r\n",
                       method="POST")
        self.assertTrue(s.recv(4096).startswith(b"HTTP/1.1 503"))

    def test_a_deadline_that_has_passed_refuses_before_the_body(self):
        nginx = self.proxy()
        s = nginx.open("/", "x-timeout: 0s\r\nTransfer-Encoding: chunked\r\n", method="POST")
        self.assertIn(b"weir-reason: deadline", s.recv(4096))

    def test_who_may_not_is_told_so_before_the_body(self):
        nginx = self.nginx("location / { weir api; deny all; proxy_pass http://service; }")
        s = nginx.open("/", "Content-Length: 1000000\r\nExpect: 100-continue\r\n",
                       method="POST")
        self.assertTrue(s.recv(4096).startswith(b"HTTP/1.1 403"))
        self.assertEqual(self.counted("offered_total"), 0)

    def post_while_full(self, nginx, chunked=False, path="/work?ms=0", headers=""):
        """Sends a whole body while the service is full; returns the socket."""
        self.hold(nginx)
        if chunked:
            s = nginx.open(path, headers + "Transfer-Encoding: chunked\r\n", method="POST")
            s.sendall(b"3\r\n123\r\n")
            s.sendall(b"0\r\n\r\n")
        else:
            s = nginx.open(path, headers + "Content-Length: 3\r\n", method="POST")
            self.addCleanup(s.close)
            time.sleep(.05)  # The body comes by itself.
            s.sendall(b"123")
        self.addCleanup(s.close)
        self.waiting(1)
        return s

    def waits_and_goes_on(self, chunked):
        nginx = self.proxy()
        s = self.post_while_full(nginx, chunked)
        self.backend.release()
        self.assertIn(b"200", s.recv(1000))
        self.assertEqual(self.backend.bodies[-1], b"123")
        drained(self.service)
        # The connection goes on as after any other request.
        s.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertIn(b"200", s.recv(1000))

    def test_a_request_whose_body_is_here_waits_for_a_place(self):
        self.waits_and_goes_on(chunked=False)

    def test_a_request_whose_chunked_body_is_here_waits_for_a_place(self):
        self.waits_and_goes_on(chunked=True)

    def test_waiting_is_not_taken_for_a_client_that_sends_nothing(self):
        nginx = self.nginx("location / { weir api; client_body_timeout 1s; "
                           "proxy_pass http://service; }")
        s = self.post_while_full(nginx)
        time.sleep(1.3)
        self.waiting(1)
        self.backend.release()
        self.assertIn(b"200", s.recv(1000))

    def test_a_client_that_leaves_after_its_body_leaves_the_queue(self):
        nginx = self.proxy()
        self.post_while_full(nginx).close()
        until(lambda: self.counted("shed_cancelled_total") == 1, "it is cancelled")
        self.waiting(0)
        self.backend.release()
        drained(self.service)
        self.assertEqual(self.backend.hits, ["/hold"])

    def test_who_waits_with_its_body_is_shed_at_its_deadline(self):
        nginx = self.proxy()
        s = self.post_while_full(nginx, headers="x-timeout: 200ms\r\n")
        self.assertIn(b"weir-reason: deadline", s.recv(4096))
        self.assertEqual(self.backend.hits, ["/hold"])
        s.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nx-timeout: 0s\r\n\r\n")
        self.assertIn(b"504", s.recv(4096))

    def test_a_body_over_http2_waits_for_a_place(self):
        nginx = self.proxy()
        self.hold(nginx)
        curl = subprocess.Popen(
            ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code} %{http_version}",
             "--http2-prior-knowledge", "-d", "x" * 100000,
             f"http://127.0.0.1:{nginx.port(1)}/work?ms=0"], stdout=subprocess.PIPE, text=True)
        self.waiting(1)
        self.backend.release()
        self.assertEqual(curl.communicate(timeout=15)[0], "200 2", nginx.errors())
        self.assertEqual(self.backend.bodies[-1], b"x" * 100000)
        drained(self.service)

    def test_an_upload_that_nginx_stores_itself_needs_no_special_directive(self):
        nginx = self.nginx("location / { weir api; dav_methods PUT; root {folder}; }",
                           start=False)
        (nginx.folder / "nginx.conf").write_text(
            (nginx.folder / "nginx.conf").read_text().replace("{folder}", str(nginx.folder)))
        nginx.start()
        self.assertEqual(nginx.get("/a", method="PUT", body=b"abc" * 9000).status, 201)
        s = nginx.open("/b", "Transfer-Encoding: chunked\r\n", method="PUT")
        s.sendall(b"3\r\n123\r\n0\r\n\r\n")
        self.assertIn(b"201", s.recv(1000))
        self.assertEqual((nginx.folder / "a").read_bytes(), b"abc" * 9000)
        self.assertEqual((nginx.folder / "b").read_bytes(), b"123")
        self.assertEqual(self.counted("offered_total"), 2)
        drained(self.service)

    def test_an_unbuffered_upload_is_decided_before_its_body(self):
        # Told by nginx's own directive, also where the name has variables.
        for target in ("http://service", "http://$proxy_to"):
            nginx = self.nginx("set $proxy_to service; location / { weir api; "
                               "proxy_request_buffering off; proxy_pass %s; }" % target)
            slow = nginx.open("/work?ms=0", "Content-Length: 6\r\n", method="POST")
            until(lambda: region(self.service)["inflight"] == 1, "it is admitted")
            slow.sendall(b"123456")
            self.assertIn(b"200", slow.recv(1000))
            drained(self.service)


class ForwardTest(NginxTest):
    """What the service is told."""

    POLICY = ONE.replace('"header:x-timeout", "header:grpc-timeout"',
                         '"header:x-timeout", "header:x-left-ms", "header:grpc-timeout"')

    def waited(self, header, policy=POLICY, more=""):
        """The headers at the service of a request that waited for 50 ms or more."""
        nginx = self.nginx("location / { weir api; %s proxy_pass http://service; }" % more,
                           policy=policy)
        self.hold(nginx)
        s = nginx.open("/", header + "\r\n")
        self.addCleanup(s.close)
        self.waiting(1)
        time.sleep(.05)
        self.backend.release()
        self.assertIn(b"200", s.recv(1000))
        return self.backend.headers[-1]

    def test_a_budget_is_handed_on_without_what_was_spent(self):
        left = self.waited("x-left-ms: 9000")["x-left-ms"]
        self.assertRegex(left, r"^\d+$")
        self.assertLessEqual(int(left), 8950)
        self.assertGreater(int(left), 0)
        self.assertRegex(self.waited("x-timeout: 9s")["x-timeout"], r"^8\d\d\dms$")
        self.assertRegex(self.waited("grpc-timeout: 9S")["grpc-timeout"], r"^8\d\d\dm$")

    def test_a_budget_of_an_untrusted_peer_is_handed_on_as_it_is(self):
        headers = self.waited("x-left-ms: 9000",
                              policy=self.POLICY.replace("127.0.0.0/8", "192.0.2.0/24"))
        self.assertEqual(headers["x-left-ms"], "9000")

    def test_what_is_left_of_any_budget_is_a_variable(self):
        headers = self.waited("x: y", more="proxy_set_header left $weir_deadline_ms;")
        # A default of 10 s begins with the decision.
        self.assertLess(int(headers["left"]), 10000)
        self.assertGreater(int(headers["left"]), 5000)

    def test_two_services_take_off_what_was_spent_once(self):
        self.second = self.service + "-b"
        nginx = self.nginx("""
    location / { weir api; error_page 502 = @b; proxy_pass http://127.0.0.1:1; }
    location @b { weir_policy b.toml; weir api; proxy_pass http://service; }""",
                           policy=self.POLICY, start=False)
        nginx.write_policy("b.toml", self.POLICY.format(service=self.second))
        nginx.start()
        self.hold(nginx)
        s = nginx.open("/", "x-left-ms: 9000\r\n")
        self.addCleanup(s.close)
        until(lambda: region(self.second)["waiting"] == 1, "it waits for the second")
        time.sleep(.3)
        self.backend.release()
        self.assertIn(b"200", s.recv(1000))
        left = int(self.backend.headers[-1]["x-left-ms"])
        self.assertLessEqual(left, 8700)
        self.assertGreater(left, 8400)


class AnswersTest(NginxTest):

    def test_an_error_page_replaces_a_refusal_and_is_not_refused(self):
        nginx = self.nginx("""
    error_page 503 /sorry;
    location / { weir paused; proxy_pass http://service; }
    location = /sorry { internal; weir paused; proxy_pass http://service/status?code=503&retry=1; }
    location /named { weir paused; error_page 503 = @named; proxy_pass http://service; }
    location @named { weir paused; proxy_pass http://service; }""")
        response = nginx.get("/")
        self.assertEqual(response.status, 503)
        self.assertEqual(response.headers.get_all("Retry-After"), ["77"])
        self.assertEqual(response.getheader("weir-reason"), "paused")
        self.assertEqual(response.headers.get_all("Cache-Control"), ["no-store"])
        self.assertEqual(response.text, "ok\n")

        self.assertEqual(nginx.get("/named").status, 200)
        self.assertEqual(self.counted("offered_total"), 2)
        self.assertEqual([r["decision"] for r in nginx.logged(2)], ["shed", "shed"])

    def test_grpc_is_refused_with_status_200_and_a_grpc_status(self):
        nginx = self.nginx("location / { weir paused; grpc_pass grpc://service; }"
                           "location /late { weir api; grpc_pass grpc://service; }")
        def call(path, *more):
            return subprocess.run(
                ["curl", "-s", "-i", "--http2-prior-knowledge", "-X", "POST",
                 "-H", "content-type: application/grpc+proto", "-H", "te: trailers",
                 *more, "--data-binary", "@/dev/null",
                 f"http://127.0.0.1:{nginx.port(1)}{path}"],
                stdout=subprocess.PIPE, text=True, timeout=15).stdout.lower()
        text = call("/pkg.S/Call")
        self.assertIn("http/2 200", text)
        self.assertIn("content-type: application/grpc\n", text.replace("\r", ""))
        self.assertIn("grpc-status: 14", text)
        self.assertIn("grpc-message: ", text)
        self.assertRegex(text, r"grpc-retry-pushback-ms: [1-9]\d*")
        self.assertNotIn("retry-after", text)
        text = call("/late", "-H", "grpc-timeout: 0n")
        self.assertIn("grpc-status: 4", text)
        self.assertIn("grpc-retry-pushback-ms: -1", text)

    def test_http2_requests_are_guarded_and_counted_like_others(self):
        nginx = self.proxy()
        self.hold(nginx)
        curl = subprocess.Popen(
            ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code} %{http_version}",
             "--http2-prior-knowledge", f"http://127.0.0.1:{nginx.port(1)}/"],
            stdout=subprocess.PIPE, text=True)
        self.waiting(1)
        gone = subprocess.Popen(
            ["curl", "-s", "--http2-prior-knowledge", f"http://127.0.0.1:{nginx.port(1)}/gone"])
        self.waiting(2)
        gone.kill()
        gone.wait()
        self.waiting(1)
        self.backend.release()
        self.assertEqual(curl.communicate(timeout=15)[0], "200 2")
        self.assertEqual(self.backend.hits, ["/hold", "/"])
        drained(self.service)


class OnceTest(NginxTest):
    """A client's request is decided once and ends once, whatever nginx does."""

    def assertCounted(self, n):
        self.assertEqual(self.counted("offered_total"), n)
        seen = drained(self.service)
        finished = sum(sum(v) for k, v in seen.items() if k.startswith("finished_"))
        self.assertEqual(finished, n)
        self.assertEqual(sum(seen["admitted_total"]), n)

    def test_subrequests_belong_to_their_request(self):
        nginx = self.nginx("""
    location / { weir api; ssi on; proxy_pass http://service; }
    location = /in { weir api; proxy_pass http://service/work?ms=0; }""")
        self.assertEqual(nginx.get("/include").text, "ok\n")
        self.assertEqual(len(self.backend.hits), 2)
        self.assertCounted(1)

    def test_what_comes_before_the_decision_asks_for_itself(self):
        nginx = self.nginx("""
    location / { weir api; auth_request /auth; proxy_pass http://service; }
    location /auth { weir api; proxy_pass http://service; }""")
        self.assertEqual(nginx.get("/").status, 200)
        self.assertEqual(self.backend.hits, ["/auth", "/"])
        self.assertCounted(2)

    def test_a_shed_authority_is_a_refusal_and_no_error(self):
        nginx = self.nginx("""
    location / { weir api; auth_request /auth; proxy_pass http://service; }
    location /auth { weir paused; proxy_pass http://service; }""")
        response = nginx.get("/")
        self.assertEqual(response.status, 503)
        self.assertEqual(response.getheader("weir-reason"), "paused")
        self.assertGreaterEqual(int(response.getheader("Retry-After")), 1)
        self.assertEqual(self.backend.hits, [])

    def test_try_files_and_named_locations_are_one_request(self):
        nginx = self.nginx("""
    location / { weir api; try_files /none @service; }
    location @service { weir other; proxy_pass http://service; }
    location /plain { try_files /none @service; }""")
        self.assertEqual(nginx.get("/").status, 200)
        self.assertCounted(1)
        self.assertEqual(nginx.get("/plain").status, 200)
        self.assertCounted(2)

    def test_rewrites_are_decided_where_they_lead(self):
        nginx = self.nginx("""
    location /old { weir paused; rewrite ^ /new last; }
    location /new { weir api; proxy_pass http://service; }""")
        self.assertEqual(nginx.get("/old").status, 200)
        self.assertCounted(1)

    def test_an_error_page_after_a_failure_is_the_same_request(self):
        nginx = self.nginx("""
    location / { weir api; proxy_intercept_errors on; error_page 500 /sorry;
                 proxy_pass http://service; }
    location /sorry { weir api; proxy_pass http://service/work?ms=0; }""")
        self.assertEqual(nginx.get("/status?code=500").status, 500)
        self.assertCounted(1)

    def test_an_accel_redirect_is_the_same_request(self):
        nginx = self.nginx("""
    location / { weir api; proxy_pass http://service; }
    location /inside { internal; weir api; proxy_pass http://service/work?ms=1&; }""")
        self.assertEqual(nginx.get("/redirect?to=/inside").status, 200)
        self.assertCounted(1)
        row = nginx.logged(1)[0]
        self.assertEqual((row["decision"], row["reason"]), ("admit", "room"))

    def test_a_return_asks_nobody_and_is_not_counted(self):
        nginx = self.nginx("location / { weir api; return 200 hello; }")
        self.assertEqual(nginx.get("/").text, "hello")
        self.assertEqual(nginx.logged(1)[0]["decision"], "off")
        self.assertCounted(0)

    def test_an_answer_without_body_ends_its_request(self):
        nginx = self.proxy()
        self.assertEqual(nginx.get("/", method="HEAD").status, 200)
        self.assertEqual(nginx.get("/status?code=304").status, 304)
        self.assertCounted(2)

    def test_a_request_with_a_body_is_counted_once(self):
        nginx = self.proxy()
        self.assertEqual(nginx.get("/", method="POST", body=b"x" * 300000).status, 200)
        self.assertEqual(nginx.get("/", method="POST", body=b"x").status, 200)
        self.assertCounted(2)


class TwoServicesTest(NginxTest):
    """One decision for each service that a request comes to."""

    def two(self, locations, policy=ONE):
        self.second = self.service + "-b"
        nginx = self.nginx(locations, policy=policy, start=False)
        nginx.write_policy("b.toml", ONE.replace("api", "only").format(service=self.second))
        return nginx.start()

    def test_failover_to_another_service_asks_there_and_gives_the_place_back(self):
        nginx = self.two("""
    location / { weir api; error_page 502 = @b; proxy_pass http://127.0.0.1:1; }
    location @b { weir_policy b.toml; weir only; proxy_pass http://service; }""")
        self.hold(nginx)
        self.assertEqual(region(self.service)["inflight"], 0)
        self.assertEqual(region(self.second)["inflight"], 1)
        s = nginx.open("/work?ms=0")
        self.addCleanup(s.close)
        until(lambda: region(self.second)["waiting"] == 1, "it waits for the second")
        self.assertEqual(self.backend.peak, 1)
        self.backend.release()
        self.assertIn(b"200", s.recv(1000))
        self.assertEqual(sum(drained(self.second)["finished_ok_total"]), 2)
        self.assertEqual(sum(drained(self.service)["finished_ignored_total"]), 2)

    def test_what_one_service_refuses_the_other_may_take(self):
        nginx = self.two("""
    location / { weir paused; error_page 503 = @b; proxy_pass http://service; }
    location @b { weir_policy b.toml; weir only; proxy_pass http://service; }""")
        response = nginx.get("/")
        self.assertEqual(response.status, 200)
        self.assertIsNone(response.getheader("weir-reason"))
        self.assertEqual(nginx.logged(1)[0]["decision"], "admit")
        self.assertEqual(sum(region(self.second)["offered_total"]), 1)

    def test_a_page_that_is_no_service_holds_no_place(self):
        nginx = self.nginx("""
    location / { weir api; error_page 502 = @sorry; proxy_pass http://127.0.0.1:1; }
    location @sorry { weir off; proxy_pass http://service; }""")
        self.hold(nginx)
        self.assertEqual(region(self.service)["inflight"], 0)

    def test_a_subrequest_to_another_service_asks_there(self):
        nginx = self.two("""
    location / { weir api; auth_request /auth; proxy_pass http://service; }
    location = /auth { weir_policy b.toml; weir only; proxy_pass http://service/hold; }""")
        clients = [nginx.open("/work?ms=0") for _ in range(2)]
        for s in clients:
            self.addCleanup(s.close)
        until(lambda: region(self.second)["waiting"] == 1, "one authority's place is taken")
        self.assertEqual(region(self.second)["inflight"], 1)
        for n in (1, 2):
            until(lambda: self.backend.hits.count("/hold") == n, "the authority is asked")
            until(lambda: self.backend.held() == 1, "the authority is asked")
            self.backend.release()
            until(lambda: self.backend.held() == 0 or n < self.backend.hits.count("/hold"),
                  "it has answered")
        for s in clients:
            self.assertIn(b"200", s.recv(1000))
        self.assertEqual(sum(drained(self.second)["finished_ok_total"]), 2)
        self.assertEqual(sum(drained(self.service)["finished_ok_total"]), 2)

    def test_a_failure_behind_an_error_page_is_still_one(self):
        nginx = self.nginx("""
    location / { weir api; proxy_read_timeout 100ms; error_page 504 =200 /sorry;
                 proxy_pass http://service; }
    location = /sorry { weir api; proxy_pass http://service/work?ms=0; }""")
        self.assertEqual(nginx.get("/hold").status, 200)
        seen = drained(self.service)
        self.assertEqual(sum(seen["finished_timed_out_total"]), 1)
        self.assertEqual(sum(seen["finished_ok_total"]), 0)


class PiecesTest(NginxTest):
    """A place is held until the subrequests are done, too."""

    def holds(self, nginx, path):
        s = nginx.open(path)
        self.addCleanup(s.close)
        return s

    def keeps_its_place(self, n):
        until(lambda: self.backend.held() == n, f"{n} pieces are asked for")
        seen = region(self.service)
        self.assertEqual(seen["inflight"], 1)
        self.assertEqual(sum(seen["finished_ok_total"]), 0)

    def once(self):
        seen = drained(self.service)
        self.assertEqual(sum(seen["offered_total"]), 1)
        self.assertEqual(sum(seen["finished_ok_total"]), 1)

    def test_server_side_includes(self):
        nginx = self.nginx("""
    location /page.html { weir api; ssi on; root {folder}; }
    location /hold { weir api; proxy_pass http://service; }""", start=False)
        conf = nginx.folder / "nginx.conf"
        conf.write_text(conf.read_text().replace("{folder}", str(nginx.folder)))
        (nginx.folder / "page.html").write_text(
            'a<!--#include virtual="/hold" -->b<!--#include virtual="/hold" wait="yes" -->'
            'c<!--#include virtual="/hold" -->d')
        nginx.start()
        s = self.holds(nginx, "/page.html")
        # The first two are asked for together; the third when the second is here.
        self.keeps_its_place(2)
        self.backend.release()
        self.keeps_its_place(1)
        self.backend.release()
        until(lambda: b"d" in s.recv(4096), "the page ends")
        self.once()

    def test_a_page_that_is_appended(self):
        nginx = self.nginx("""
    location / { weir api; addition_types *; add_after_body /hold; proxy_pass http://service; }
    location /hold { weir api; proxy_pass http://service; }""")
        self.holds(nginx, "/work?ms=0")
        self.keeps_its_place(1)
        self.backend.release()
        self.once()

    def test_slices(self):
        nginx = self.nginx("""
    location / { weir api; slice 1; proxy_set_header Range $slice_range;
                 proxy_pass http://service; }""")
        self.holds(nginx, "/pieces")
        self.keeps_its_place(1)
        self.backend.release()
        until(lambda: len(self.backend.hits) == 3, "the third is asked for")
        self.keeps_its_place(1)
        self.backend.release()
        self.once()


class CacheTest(NginxTest):
    """The recipe of docs/nginx.md: the cache stands before weir."""

    HTTP = """
  proxy_cache_path cache keys_zone=pages:1m;
  limit_req_status 429;
  upstream service { server %s; }
  server {
    listen unix:{folder}/weir.sock;
    set_real_ip_from unix:;
    real_ip_header X-Real-IP;
    weir_policy shop.toml;
%s
  }
  server {
    listen 127.0.0.1:{port};
    proxy_cache pages;
    proxy_cache_valid 200 1s;
    proxy_cache_lock on;
    proxy_cache_use_stale error timeout updating http_503 http_504;
    add_header Cache $upstream_cache_status;
    location / {
      proxy_set_header Host $host;
      proxy_set_header X-Real-IP $remote_addr;
      proxy_pass http://unix:{folder}/weir.sock;
    }
  }
"""

    def cached(self, locations="location / { weir api; proxy_pass http://service; }"):
        nginx = self.nginx(locations, http=self.HTTP, start=False)
        conf = nginx.folder / "nginx.conf"
        conf.write_text(conf.read_text().replace("{folder}", str(nginx.folder)))
        return nginx

    def test_what_is_cached_costs_no_place_and_is_not_refused(self):
        nginx = self.cached().start()
        self.assertEqual(nginx.get("/work?ms=0").getheader("Cache"), "MISS")
        self.hold(nginx)
        response = nginx.get("/work?ms=0")
        self.assertEqual((response.status, response.getheader("Cache")), (200, "HIT"))
        self.assertEqual(self.counted("offered_total"), 2)

    def test_what_is_stale_is_better_than_a_refusal(self):
        nginx = self.cached().start()
        nginx.get("/work?ms=0")
        self.hold(nginx)
        time.sleep(2.1)
        response = nginx.get("/work?ms=0", {"x-timeout": "1ms"})
        self.assertEqual((response.status, response.getheader("Cache")), (200, "STALE"))
        # What is not there is refused by its reason.
        response = nginx.get("/other", {"x-timeout": "1ms"})
        self.assertEqual(response.getheader("weir-reason"), "deadline")

    def test_who_waits_for_the_same_answer_holds_no_place(self):
        nginx = self.cached().start()
        first = self.hold(nginx)
        others = [nginx.open("/hold") for _ in range(3)]
        for s in others:
            self.addCleanup(s.close)
        time.sleep(.1)
        self.assertEqual(self.counted("offered_total"), 1)
        self.backend.release()
        for s in [first, *others]:
            self.assertIn(b"200", s.recv(1000))
        self.assertEqual(self.counted("offered_total"), 1)

    def test_a_check_warns_where_weir_and_a_cache_meet(self):
        nginx = self.cached()
        status, text = nginx.check()
        self.assertEqual((status, "meets a cache" in text), (0, False))
        conf = nginx.folder / "nginx.conf"
        conf.write_text(conf.read_text().replace(
            "location / { weir api;", "location / { weir api; proxy_cache pages;"))
        status, text = nginx.check()
        self.assertEqual(status, 0)
        self.assertRegex(text, r"`weir api` meets a cache in .*nginx.conf:\d+: ")
        self.assertIn("Behind a cache", text)


class EndingTest(NginxTest):

    def finished(self, outcome):
        """Waits until one request has ended, and so."""
        def ended():
            return {k: sum(v) for k, v in region(self.service).items()
                    if k.startswith("finished_") and sum(v)}
        self.assertEqual(until(ended, "the request ends"),
                         {f"finished_{outcome}_total": 1})
        drained(self.service)

    def test_a_client_that_leaves_a_running_request_cancels_it(self):
        nginx = self.proxy()
        self.hold(nginx).close()
        self.finished("cancelled")
        self.assertEqual(nginx.logged(1)[0]["status"], 499)

    def test_a_client_that_leaves_while_it_waits_never_reaches_the_service(self):
        nginx = self.proxy()
        self.hold(nginx)
        for _ in range(3):
            nginx.open("/work?ms=0").close()
        until(lambda: self.counted("shed_cancelled_total") == 3, "3 are cancelled")
        self.waiting(0)
        rows = nginx.logged(3)
        self.assertEqual({(r["status"], r["decision"], r["reason"]) for r in rows},
                         {(499, "shed", "cancelled")})
        self.backend.release()
        drained(self.service)
        self.assertEqual(self.backend.hits, ["/hold"])

    def test_a_refused_connection_teaches_nothing(self):
        nginx = self.nginx("location / { weir api; proxy_pass http://127.0.0.1:1; }")
        self.assertEqual(nginx.get("/").status, 502)
        self.finished("ignored")

    def test_a_timeout_of_the_service_is_one(self):
        nginx = self.nginx("location / { weir api; proxy_read_timeout 100ms; "
                           "proxy_pass http://service; }")
        self.assertEqual(nginx.get("/hold").status, 504)
        self.finished("timed_out")

    def test_an_answer_that_breaks_off_is_an_error(self):
        nginx = self.proxy()
        s = nginx.open("/break")
        while s.recv(1000):
            pass
        self.finished("error")

    def test_a_refusal_by_the_service_teaches_nothing(self):
        nginx = self.proxy()
        self.assertEqual(nginx.get("/status?code=503").status, 503)
        self.finished("ignored")

    def test_an_upgraded_connection_gives_its_place_back_at_once(self):
        nginx = self.nginx("""location / { weir api; proxy_set_header Upgrade $http_upgrade;
            proxy_set_header Connection upgrade; proxy_pass http://service; }""")
        s = nginx.open("/upgrade", "Upgrade: echo\r\nConnection: upgrade\r\n")
        self.addCleanup(s.close)
        self.assertIn(b"101", s.recv(4096))
        self.finished("ignored")
        s.sendall(b"hello")
        self.assertEqual(s.recv(100), b"hello")

    def test_an_event_stream_gives_its_place_back_at_its_header(self):
        nginx = self.proxy()
        s = nginx.open("/events")
        self.addCleanup(s.close)
        self.assertIn(b"event-stream", s.recv(4096))
        self.finished("ignored")
        self.assertEqual(self.backend.running, 1)

    def test_a_stream_resource_gives_its_place_back_at_its_header(self):
        nginx = self.nginx("location / { weir feed; proxy_pass http://service; }")
        self.assertEqual(nginx.get("/work?ms=5").status, 200)
        self.finished("ignored")

    def test_a_slow_reader_does_not_hold_a_place(self):
        nginx = self.proxy()
        s = nginx.open("/bytes?n=30000000")
        self.addCleanup(s.close)
        self.finished("ok")
        self.assertEqual(self.backend.bytes_sent, 30000000)
        self.assertEqual(nginx.access(), [])  # nginx still has most of it.

    def test_a_slow_reader_of_an_unbuffered_answer_teaches_nothing(self):
        nginx = self.nginx("location / { weir api; proxy_buffering off; "
                           "proxy_pass http://service; }")
        s = nginx.open("/bytes?n=30000000")
        until(lambda: self.backend.bytes_sent > 0, "the service sends")
        time.sleep(0.3)  # Lets every buffer on the way fill up.
        self.assertEqual(region(self.service)["inflight"], 1)
        while s.recv(1 << 20):
            if self.backend.bytes_sent == 30000000 and not self.backend.running:
                break
        s.close()
        seen = drained(self.service)
        self.assertEqual(sum(seen["finished_ok_total"]), 0)

    def test_a_slow_upload_holds_no_place(self):
        nginx = self.proxy()
        slow = nginx.open("/work?ms=0", "Content-Length: 6\r\n", method="POST")
        slow.sendall(b"123")
        self.assertEqual(nginx.get("/").status, 200)
        self.assertEqual(self.counted("offered_total"), 1)
        slow.sendall(b"456")
        self.assertIn(b"200", slow.recv(1000))
        self.assertEqual(sum(drained(self.service)["finished_ok_total"]), 2)

    def test_an_upload_without_request_buffering_reaches_the_service_as_it_comes(self):
        nginx = self.nginx("""location / { weir api; weir_request_buffering off;
            proxy_request_buffering off; proxy_pass http://service; }""")
        slow = nginx.open("/work?ms=0", "Content-Length: 6\r\n", method="POST")
        until(lambda: region(self.service)["inflight"] == 1, "it is admitted")
        slow.sendall(b"123456")
        self.assertIn(b"200", slow.recv(1000))
        self.finished("ok")

    def test_a_worker_that_ends_gives_back_what_it_held(self):
        nginx = self.proxy()
        self.hold(nginx)
        waiting = nginx.open("/work?ms=0")
        self.addCleanup(waiting.close)
        self.waiting(1)
        nginx._process.terminate()
        nginx._process.wait(15)
        seen = region(self.service)
        self.assertEqual((seen["inflight"], seen["waiting"], seen["workers"]), (0, 0, []))


if __name__ == "__main__":
    runner.main("e2e_nginx_test")
