"""What ngx_http_weir_module does to a request, with real nginx."""

import os
import pathlib
import re
import socket
import subprocess
import time
import unittest

from harness import Flood, Nginx, Service, drained, region, until
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

    def test_a_segment_that_is_no_region_refuses_the_start(self):
        nginx = self.proxy(start=False)
        segment = pathlib.Path(f"/dev/shm/weir.{self.service}")
        segment.write_bytes(b"something else" * 1000)
        segment.chmod(0o600)
        with self.assertRaises(AssertionError) as raised:
            nginx.start()
        self.assertIn("weir_policy", str(raised.exception))
        self.assertEqual(segment.read_bytes()[:14], b"something else")


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
    location / { weir api; auth_request /auth; proxy_pass http://service; }
    location /auth { weir api; proxy_pass http://service; }""")
        self.assertEqual(nginx.get("/").status, 200)
        self.assertEqual(self.backend.hits, ["/auth", "/"])
        self.assertCounted(1)

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
