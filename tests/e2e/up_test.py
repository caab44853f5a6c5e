"""weir up, with the real nginx: it serves, says what is wrong, and leaves nothing."""

import contextlib
import http.server
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.request

from harness import BUILD, ROOT
import runner

WEIR = BUILD / "cli/weir"
SCENARIO = ROOT / "tests/scenarios/short-flood.toml"


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.status, answer.read()


def children_of(pid):
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(stat.parent.name))
    return found


def command_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def is_running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def eventually(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


class Hello(http.server.BaseHTTPRequestHandler):
    """Answers with the host that it was asked for."""

    protocol_version = "HTTP/1.1"
    asked = 0

    def do_GET(self):
        self.answer(200)

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(201)

    def answer(self, status):
        Hello.asked += 1
        body = self.headers["Host"].encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def own_service():
    """A service on the loopback; gives its address."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hello) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


class UpTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": folder.name, "NO_COLOR": "1"}

    def start(self, *arguments):
        """Starts it and reads its greeting; returns it with what it said."""
        up = subprocess.Popen([WEIR, "up", *map(str, arguments)], env=self.environment,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.stop, up)
        greeting = ""
        for line in up.stdout:
            greeting += line
            if line.startswith("Ctrl-C"):
                return up, greeting
        self.fail(f"it ended with {up.wait()}: {up.stderr.read()}")

    def stop(self, up):
        if up.poll() is None:
            up.terminate()
        up.wait(timeout=30)
        up.stdout.close()
        up.stderr.close()

    def run_up(self, *arguments):
        return subprocess.run([WEIR, "up", *map(str, arguments)], env=self.environment,
                              capture_output=True, text=True, timeout=120)

    def assert_nothing_left(self, greeting):
        self.assertEqual(list(self.folder.iterdir()), [])
        service = re.search(r"top (\S+)", greeting)[1]
        self.assertFalse(pathlib.Path(f"/dev/shm/weir.{service}").exists())

    def test_both_ports_serve_until_it_is_told_to_stop(self):
        up, greeting = self.start("--scenario", SCENARIO)
        urls = re.findall(r"^  with.*?(http://\S+)", greeting, flags=re.M)
        self.assertEqual(len(urls), 2)
        for url in urls:
            self.assertEqual(get(url)[0], 200)
        children = children_of(up.pid)
        self.assertEqual(len(children), 3)  # Two backends and nginx.
        up.send_signal(signal.SIGINT)
        self.assertEqual(up.wait(timeout=30), 0)
        self.assertFalse(any(map(is_running, children)))
        self.assert_nothing_left(greeting)

    def test_two_instances_do_not_share_anything(self):
        first, first_said = self.start("--scenario", SCENARIO)
        second, second_said = self.start("--scenario", SCENARIO)
        name = r"top (\S+)"
        self.assertNotEqual(re.search(name, first_said)[1], re.search(name, second_said)[1])
        self.stop(first)
        self.assertEqual(get(re.search(r"http://\S+", second_said)[0])[0], 200)

    def test_the_users_own_service_stands_behind_it(self):
        with own_service() as upstream:
            _, greeting = self.start("--upstream", upstream)
            url = re.search(r"with weir\s+(http://\S+)", greeting)[1]
            self.assertEqual(get(url), (200, upstream.encode()))
            self.assertNotIn("without", greeting)
            # Another service's scenario asks for paths that this one lacks.
            self.assertNotIn(".toml --target", greeting)

    def test_from_routes_over_the_log_to_a_replay(self):
        with own_service() as upstream, tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder, "access.log")
            _, greeting = self.start("--upstream", upstream, "--shadow", "--log", log,
                                     "--route", "/buy=checkout", "--route", "/static=off")
            url = re.search(r"with weir\s+(http://\S+)", greeting)[1]
            storm = re.search(r"^  \S+weir (storm .*) --rate", greeting, flags=re.M)[1].split()
            self.assertEqual(storm, ["storm", "--target", url + "/buy"])
            done = subprocess.run([WEIR, *storm, "--rate", "100", "--duration", "1s", "--path", "/buy",
                                   "--path", "/static/logo", "--method", "POST", "--body", "x",
                                   "--header", "Content-Type: text/plain", "--json"],
                                  capture_output=True, text=True, timeout=60)
            report = json.loads(done.stdout)
            answers = {(each["route"], each["answer"]): each["count"] for each in report["answers"]}
            self.assertEqual(set(answers), {("/buy", "201"), ("/static/logo", "201")}, done.stderr)
            self.assertEqual(sum(answers.values()), report["offered"])
            get(url + "/buy")
            self.assertTrue(eventually(lambda: '"GET /buy HTTP/1.1" 200' in log.read_text()))
            lines = log.read_text().splitlines()
            self.assertTrue(any("/static/logo" in line and " off/" in line for line in lines))
            self.assertTrue(any("/buy" in line and " admit/room " in line for line in lines))
            replay = subprocess.run([WEIR, "replay", log, "--deadline", "1s"],
                                    capture_output=True, text=True, timeout=60)
            self.assertEqual(replay.returncode, 0, replay.stderr)
            self.assertIn('name = "/buy"', replay.stdout)

    def test_the_configuration_of_an_own_service_is_one_that_nginx_takes(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.run_up("--upstream", "127.0.0.1:9", "--route", "/buy=checkout", "--print-conf")
            self.assertEqual(done.returncode, 0, done.stderr)
            policy = re.findall(r"^#   (.*)$|^(#)$", done.stdout, flags=re.M)
            pathlib.Path(folder, "weir.toml").write_text("\n".join(line for line, _ in policy))
            conf = pathlib.Path(folder, "nginx.conf")
            conf.write_text(done.stdout)
            check = subprocess.run(["nginx", "-t", "-e", "stderr", "-p", folder, "-c", conf],
                                   capture_output=True, text=True, timeout=60,
                                   env={**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin"})
            self.assertEqual(check.returncode, 0, check.stderr)

    def test_who_stops_a_storm_gets_what_it_has(self):
        Hello.asked = 0
        with own_service() as upstream:
            storm = subprocess.Popen([WEIR, "storm", "--target", f"http://{upstream}/", "--rate", "200",
                                      "--duration", "10m"],
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.addCleanup(storm.kill)
            self.assertTrue(eventually(lambda: Hello.asked > 20))
            storm.send_signal(signal.SIGINT)
            said, complaint = storm.communicate(timeout=30)
            self.assertEqual(storm.returncode, 1)
            self.assertGreater(int(re.search(r"^offered +(\d+)", said, flags=re.M)[1]), 10)
            self.assertRegex(said, r"(?m)^  200 +\d+")
            self.assertIn("stopped after", complaint)

    def test_a_child_that_dies_ends_it_with_the_reason(self):
        up, greeting = self.start("--scenario", SCENARIO)
        nginx = next(pid for pid in children_of(up.pid)
                     if command_of(pid)[0].startswith(b"nginx"))
        workers = children_of(nginx)
        os.kill(nginx, signal.SIGKILL)
        self.assertEqual(up.wait(timeout=30), 1)
        self.assertIn("weir: nginx was killed by signal 9", up.stderr.read())
        self.assertTrue(eventually(lambda: not any(map(is_running, workers))))
        self.assert_nothing_left(greeting)

    def test_its_children_die_with_it(self):
        up, _ = self.start("--scenario", SCENARIO)
        children = children_of(up.pid)
        everyone = children + [pid for child in children for pid in children_of(child)]
        up.kill()
        up.wait(timeout=30)
        self.assertTrue(eventually(lambda: not any(map(is_running, everyone))))
        for service in pathlib.Path("/dev/shm").glob(f"weir.up-{up.pid}"):
            service.unlink()

    def test_a_port_in_use_is_one_clear_message(self):
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = other.getsockname()[1]
            done = self.run_up("--scenario", SCENARIO, "--port", port)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, f"weir: port {port} is in use; name another one, "
                                      "or none to get a free one\n")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_service_that_is_not_there_is_one_clear_message(self):
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = other.getsockname()[1]
        done = self.run_up("--upstream", f"127.0.0.1:{port}")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, f"weir: nothing answers at 127.0.0.1:{port}: "
                                      "Connection refused; start your service first\n")

    def test_a_wrong_policy_starts_nothing(self):
        policy = self.folder / "policy.toml"
        policy.write_text("service = 'shop'\n[resource.api]\ndeadlin = '1s'\n")
        done = self.run_up("--policy", policy)
        self.assertEqual(done.returncode, 2)
        self.assertIn("policy.toml:3:1: error:", done.stderr)
        self.assertIn("`deadline`", done.stderr)
        self.assertIn("nothing was started", done.stderr)

    def test_input_that_makes_no_sense_is_refused(self):
        for arguments in (["--upstream", "nonsense"], ["--json"], ["--guarded-only"], ["--workers", "0"],
                          ["--demo", "--upstream", "127.0.0.1:1"], ["--nonsense"],
                          ["--scenario", self.folder / "none.toml"],
                          ["--route", "/a=b"], ["--print-conf"],
                          ["--upstream", "127.0.0.1:1", "--route", "a=b"],
                          ["--upstream", "127.0.0.1:1", "--route", "/a=a b"],
                          ["--upstream", "127.0.0.1:1", "--scenario", SCENARIO],
                          ["--upstream", "127.0.0.1:1", "--shadow", "--policy", ROOT / "examples/policies/quota.toml"]):
            with self.subTest(arguments):
                done = self.run_up(*arguments)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertNotEqual(done.stderr, "")

    def test_the_demonstration_ends_in_one_object(self):
        for _ in range(3):  # It says so when the machine was too busy to tell.
            done = self.run_up("--scenario", SCENARIO, "--demo", "--json")
            if "these figures mean nothing" not in done.stderr:
                break
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual(list(result), ["protected", "unprotected"])
        for report in result.values():
            self.assertEqual(report["scenario"], "short-flood")
            self.assertEqual([one["name"] for one in report["classes"]], ["vital", "sheddable"])
            self.assertEqual(report["offered"], sum(report[part] for part in
                                                    ("good", "late", "shed", "failed")))
        flood = {name: report["phases"][1] for name, report in result.items()}
        self.assertGreater(flood["protected"]["good"], 2 * flood["unprotected"]["good"])
        self.assertEqual(result["unprotected"]["shed"], 0)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_the_guarded_port_may_be_stormed_alone(self):
        done = self.run_up("--scenario", SCENARIO, "--scale", ".3",
                           "--demo", "--guarded-only", "--json")
        self.assertNotEqual(done.returncode, 2, done.stderr)
        self.assertEqual(list(json.loads(done.stdout.splitlines()[-1])), ["protected"])
        self.assertNotIn("without: ", done.stderr)


if __name__ == "__main__":
    runner.main("e2e_up_test")
