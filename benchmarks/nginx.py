"""What the module costs nginx, and what a refusal costs against proxying.

requests_ratio_on_off   requests/s of `empty_gif` with the module on, by those
                        of an nginx that did not load it; pairs A B A B, the
                        median of the pairs' ratios.
refuse_cpu_ratio        CPU that nginx spends on a request which it proxies to
                        another nginx, by what it spends on one that it refuses.
refuse_cpu_ratio_with_upstream
                        the same with the CPU of that other nginx added.

CPU is what /proc counts for the nginx worker, over the same number of seconds.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("WEIR_BUILD") or ROOT / "build/release")
MODULE = BUILD / "adapters/nginx/ngx_http_weir_module.so"

# Chosen: 9 pairs, so that the median stands when a few are disturbed.
PAIRS = 9
SECONDS = 3
CONNECTIONS = 32
TICKS = os.sysconf("SC_CLK_TCK")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Nginx:
    def __init__(self, folder, name, server, load=""):
        self.port = free_port()
        prefix = folder / name
        prefix.mkdir()
        (prefix / "nginx.conf").write_text(f"""
{load}
daemon off;
{'user root;' if os.getuid() == 0 else ''}
worker_processes 1;
pid nginx.pid;
error_log error.log warn;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  scgi_temp_path scgi;
  uwsgi_temp_path uwsgi;
  keepalive_requests 1000000000;
{server.replace('{port}', str(self.port))}
}}
""")
        self.process = subprocess.Popen(
            ["nginx", "-p", str(prefix), "-c", "nginx.conf", "-e", str(prefix / "error.log")])
        end = time.monotonic() + 10
        while True:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                break
            if self.process.poll() is not None or time.monotonic() > end:
                sys.exit("nginx did not start:\n" + (prefix / "error.log").read_text())
            time.sleep(0.01)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(10)

    def cpu(self):
        """Seconds that the worker has used so far."""
        pid = self.process.pid
        worker = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0]
        fields = pathlib.Path(f"/proc/{worker}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS


def wrk(port, path, seconds=SECONDS):
    """Returns requests, requests/s and answers that were not 2xx or 3xx."""
    text = subprocess.run(
        ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}", f"http://127.0.0.1:{port}{path}"],
        check=True, stdout=subprocess.PIPE, text=True).stdout
    failed = re.search(r"Socket errors: (.*)", text)
    if failed:
        sys.exit(f"wrk on {path}: {failed[0]}")
    other = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    return (int(re.search(r"(\d+) requests in", text)[1]),
            float(re.search(r"Requests/sec:\s+([\d.]+)", text)[1]),
            int(other[1]) if other else 0)


def cpu_per_request(port, path, nginxes, expect_refusals):
    before = [n.cpu() for n in nginxes]
    requests, _, refused = wrk(port, path)
    used = [n.cpu() - b for n, b in zip(nginxes, before)]
    if (refused == requests) != expect_refusals or (refused and not expect_refusals):
        sys.exit(f"{path}: {refused} of {requests} answers were refusals")
    return [u / requests for u in used]


def result(metric, values, unit="ratio"):
    return {"metric": metric, "value": statistics.median(values), "unit": unit,
            "runs": len(values), "min": min(values), "max": max(values)}


def measure(folder, service):
    (folder / "bench.toml").write_text(
        f'service = "{service}"\n[limit]\nfloor = 1000\n'
        "[resource.api]\n[resource.paused]\npaused = true\n")
    load = f"load_module {MODULE};"
    on = Nginx(folder, "on", f"""
  weir_policy {folder}/bench.toml;
  server {{ listen 127.0.0.1:{{port}}; location / {{ weir api; empty_gif; }} }}""", load)
    off = Nginx(folder, "off", """
  server { listen 127.0.0.1:{port}; location / { empty_gif; } }""")
    upstream = Nginx(folder, "upstream", """
  server { listen 127.0.0.1:{port}; location / { empty_gif; } }""")
    front = Nginx(folder, "front", f"""
  weir_policy {folder}/bench.toml;
  upstream service {{ server 127.0.0.1:{upstream.port}; keepalive 64;
                      keepalive_requests 1000000000; }}
  server {{
    listen 127.0.0.1:{{port}};
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    location / {{ weir api; proxy_pass http://service; }}
    location /refuse {{ weir paused; proxy_pass http://service; }}
  }}""", load)
    try:
        wrk(on.port, "/", 1), wrk(off.port, "/", 1), wrk(front.port, "/", 1)
        ratios, alone, both, proxy_us, refuse_us = [], [], [], [], []
        for pair in range(PAIRS):
            rates = {}
            order = [on, off] if pair % 2 == 0 else [off, on]
            for nginx in order:
                _, rates[nginx], errors = wrk(nginx.port, "/")
                if errors:
                    sys.exit(f"empty_gif: {errors} answers were errors")
            ratios.append(rates[on] / rates[off])
            proxied = cpu_per_request(front.port, "/", [front, upstream], False)
            refused = cpu_per_request(front.port, "/refuse", [front, upstream], True)
            alone.append(proxied[0] / refused[0])
            both.append(sum(proxied) / refused[0])
            proxy_us.append(proxied[0] * 1e6)
            refuse_us.append(refused[0] * 1e6)
            print(f"pair {pair + 1}: on {rates[on]:.0f}/s, off {rates[off]:.0f}/s, "
                  f"proxy {proxy_us[-1]:.1f} us, refuse {refuse_us[-1]:.1f} us",
                  file=sys.stderr, flush=True)
        return [result("requests_ratio_on_off", ratios),
                result("refuse_cpu_ratio", alone),
                result("refuse_cpu_ratio_with_upstream", both),
                result("proxy_cpu_us", proxy_us, "us"),
                result("refuse_cpu_us", refuse_us, "us")]
    finally:
        for nginx in (on, off, upstream, front):
            nginx.stop()


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-bench-"))
    service = f"bench-{os.getpid()}"
    try:
        results = measure(folder, service)
    finally:
        pathlib.Path(f"/dev/shm/weir.{service}").unlink(missing_ok=True)
        shutil.rmtree(folder)
    print(json.dumps({"name": "nginx", "results": results}))


main()
