"""What the end-to-end tests share: real nginx, a service behind it, clients.

Everything listens on free ports of the loopback and writes into a folder of
its own.  Processes are ended by their pid.
"""

import asyncio
import contextlib
import ctypes
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("WEIR_BUILD") or ROOT / "build/release").resolve()
MODULE = BUILD / "adapters/nginx/ngx_http_weir_module.so"
READER = BUILD / "tests/e2e/region_reader"

# Chosen: what waits for an event gives up after this; far above what any of
# them takes, so that a loaded machine fails no test.
PATIENCE = 15


# Looked up here: not in the child, where other threads may hold locks.
_prctl = ctypes.CDLL(None).prctl


def end_with_parent():
    """In a child: nginx ends when the test is killed and cannot end it."""
    pr_set_pdeathsig = 1
    _prctl(pr_set_pdeathsig, signal.SIGTERM)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def until(condition, what, patience=PATIENCE):
    """Waits until `condition()` is true and returns its value."""
    end = time.monotonic() + patience
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"still not so after {patience} s: {what}")
        time.sleep(0.005)


class Service:
    """A service that is asked over HTTP/1.1 and does what the path says.

    /work?ms=N        answers after N ms, once one of its `workers` is free
    /hold             answers when the test calls release()
    /status?code=N    answers with that status
    /close            closes the connection without an answer
    /break            sends half of an answer
    /bytes?n=N        answers N bytes
    /upgrade          switches protocols and echoes
    /events           an event stream that lasts until the client leaves
    /redirect?to=P    X-Accel-Redirect to P
    /include          a page that includes /in
    /pieces           the byte that the Range asks for, of three; all but the
                      first are held as by /hold
    """

    def __init__(self, workers=1000):
        self.lock = threading.Lock()
        self.hits = []  # Paths asked for.
        self.headers = []  # Of each, names in lower case.
        self.bodies = []
        self.running = 0
        self.peak = 0
        self.bytes_sent = 0
        self._workers = workers
        self._held = []
        self._tasks = set()
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._started.wait()

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def release(self):
        """Answers all requests to /hold."""
        self._loop.call_soon_threadsafe(self._release)

    def held(self):
        return len(self._held)

    def close(self):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _release(self):
        for future in self._held:
            if not future.done():
                future.set_result(None)
        self._held.clear()

    def _run(self):
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._start())
        self._started.set()
        self._loop.run_forever()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._server.close()

    async def _start(self):
        self._free = asyncio.Semaphore(self._workers)
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", 0, backlog=4096)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _serve(self, reader, writer):
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        except asyncio.CancelledError:
            pass
        finally:
            writer.close()

    async def _one(self, reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        url = urllib.parse.urlsplit(lines[0].split(" ")[1])
        headers = {k.lower(): v for k, v in
                   (line.split(": ", 1) for line in lines[1:] if ": " in line)}
        body = b""
        if "content-length" in headers:
            body = await reader.readexactly(int(headers["content-length"]))
        query = dict(urllib.parse.parse_qsl(url.query))
        with self.lock:
            self.hits.append(url.path)
            self.headers.append(headers)
            self.bodies.append(body)
            self.running += 1
            self.peak = max(self.peak, self.running)
        try:
            what = url.path.rsplit("/", 1)[-1]
            if what == "pieces":
                query["at"] = headers["range"].split("=")[1].split("-")[0]
            return await self._answer(what, query, reader, writer)
        finally:
            with self.lock:
                self.running -= 1

    async def _answer(self, what, query, reader, writer):
        status, extra, body = 200, "", b"ok\n"
        if what == "work":
            async with self._free:
                await asyncio.sleep(float(query["ms"]) / 1000)
        elif what == "hold":
            future = self._loop.create_future()
            self._held.append(future)
            await future
        elif what == "status":
            status = int(query["code"])
            extra = "Retry-After: 77\r\n" if "retry" in query else ""
        elif what == "close":
            return False
        elif what == "break":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf")
            await writer.drain()
            return False
        elif what == "bytes":
            return await self._send_bytes(int(query["n"]), writer)
        elif what == "upgrade":
            writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\n"
                         b"Connection: upgrade\r\n\r\n")
            while data := await reader.read(1000):
                writer.write(data)
            return False
        elif what == "events":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                         b"X-Accel-Buffering: no\r\nConnection: close\r\n\r\ndata: 1\n\n")
            await reader.read()
            return False
        elif what == "include":
            extra = "Content-Type: text/html\r\n"
            body = b'<!--#include virtual="/in" -->'
        elif what == "pieces":
            at = int(query["at"])
            status, body = 206, b"abc"[at:at + 1]
            extra = f"Content-Range: bytes {at}-{at}/3\r\n"
            if at:
                future = self._loop.create_future()
                self._held.append(future)
                await future
        elif what == "redirect":
            extra = f"X-Accel-Redirect: {query['to']}\r\n"
        writer.write(f"HTTP/1.1 {status} X\r\n{extra}Content-Length: {len(body)}\r\n\r\n"
                     .encode() + body)
        await writer.drain()
        return True

    async def _send_bytes(self, n, writer):
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {n}\r\n\r\n".encode())
        for start in range(0, n, 65536):
            writer.write(b"x" * min(65536, n - start))
            await writer.drain()
            self.bytes_sent = min(start + 65536, n)
        return True


def forget(service):
    """Removes what a service leaves behind: its region and its switches."""
    for name in (f"weir.{service}", f"weir.{service}.switches"):
        pathlib.Path("/dev/shm", name).unlink(missing_ok=True)


class Nginx:
    """The distribution's nginx with the module, in a folder of its own."""

    LOG = ("$status $uri decision=$weir_decision reason=$weir_reason "
           "queue_ms=$weir_queue_ms limit=$weir_limit")

    def __init__(self, http, policies, workers=1, user=None, more=""):
        """`http` goes into http { }; {port} in it is port(0), {port1} port(1).

        `policies` maps file names to texts.
        """
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-e2e-"))
        if user:
            self.folder.chmod(0o755)
        self._ports = [free_port() for _ in range(3)]
        self._workers, self._user, self._more = workers, user, more
        self._process = None
        self._services = set()
        for name, text in policies.items():
            self.write_policy(name, text)
        self.configure(http)

    def port(self, n=0):
        return self._ports[n]

    def configure(self, http):
        for n, port in enumerate(self._ports):
            http = http.replace("{port%s}" % (n or ""), str(port))
        user = self._user or ("root" if os.getuid() == 0 else None)
        (self.folder / "nginx.conf").write_text(f"""
load_module {MODULE};
daemon off;
{f'user {user};' if user else ''}
worker_processes {self._workers};
pid nginx.pid;
error_log error.log info;
worker_shutdown_timeout 10s;
{self._more}
events {{ worker_connections 4096; }}
http {{
  log_format weir '{self.LOG}';
  access_log access.log weir;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  scgi_temp_path scgi;
  uwsgi_temp_path uwsgi;
  proxy_next_upstream off;
{http}
}}
""")

    def write_policy(self, name, text):
        for line in text.splitlines():
            if line.startswith("service"):
                self._services.add(line.split('"')[1])
        path = self.folder / name
        fresh = path.with_suffix(".new")
        fresh.write_text(text)
        fresh.rename(path)

    def command(self, *arguments):
        return ["nginx", "-p", str(self.folder), "-c", "nginx.conf",
                "-e", str(self.folder / "error.log"), *arguments]

    def check(self):
        """Runs nginx -t; returns its status and what it says."""
        done = subprocess.run(self.command("-t"), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        return done.returncode, done.stdout

    def start(self):
        self._process = subprocess.Popen(
            self.command(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=end_with_parent)
        until(lambda: self._process.poll() is not None or self._listens(),
              "nginx listens")
        if self._process.poll() is not None:
            raise AssertionError("nginx did not start:\n" + self.errors())
        return self

    def _listens(self):
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", self.port()), 1).close()
            return len(self.workers()) == self._workers
        return False

    @property
    def pid(self):
        return self._process.pid

    def workers(self):
        children = pathlib.Path(f"/proc/{self.pid}/task/{self.pid}/children")
        with contextlib.suppress(OSError):
            # With a cache there are its manager and its loader, too.
            return [int(p) for p in children.read_text().split()
                    if b"worker" in pathlib.Path(f"/proc/{p}/cmdline").read_bytes()]
        return []

    def alive(self):
        return self._process.poll() is None

    def reload(self):
        """Reloads, and waits until all workers are new ones."""
        old = set(self.workers())
        self.ask_reload()
        until(lambda: len(self.workers()) == self._workers
              and not old & set(self.workers()), "new workers, and only those")

    def ask_reload(self):
        self._process.send_signal(signal.SIGHUP)

    def ask_end(self):
        """Ends it, and leaves its folder and its segments."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(PATIENCE)

    def stop(self):
        if self._process and self.alive():
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        for service in self._services:
            # Switches outlive the service; who sets some calls forget().
            pathlib.Path(f"/dev/shm/weir.{service}").unlink(missing_ok=True)
        shutil.rmtree(self.folder)

    def errors(self):
        with contextlib.suppress(FileNotFoundError):
            return (self.folder / "error.log").read_text(errors="replace")
        return ""

    def access(self):
        """The lines of the access log, as dictionaries."""
        rows = []
        for line in (self.folder / "access.log").read_text().splitlines():
            status, uri, *rest = line.split(" ")
            rows.append({"status": int(status), "uri": uri,
                         **dict(pair.split("=") for pair in rest)})
        return rows

    def logged(self, n):
        """The access log, once it has at least `n` lines."""
        until(lambda: len(self.access()) >= n, f"{n} lines in the access log")
        return self.access()

    # Clients.

    def get(self, path, headers=None, n=0, method="GET", body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port(n),
                                                timeout=PATIENCE)
        with contextlib.closing(connection):
            connection.request(method, path, body=body, headers=headers or {})
            response = connection.getresponse()
            response.text = response.read().decode(errors="replace")
            return response

    def open_http2(self, paths, n=0):
        """Sends all requests at once through one connection; returns the socket."""
        def frame(kind, flags, stream, payload=b""):
            return (len(payload).to_bytes(3, "big") + bytes([kind, flags])
                    + stream.to_bytes(4, "big") + payload)
        def text(value):
            return bytes([len(value)]) + value.encode()
        s = socket.create_connection(("127.0.0.1", self.port(n)), PATIENCE)
        data = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0)
        for i, path in enumerate(paths):
            # GET, http, the path, an authority; the whole header and no body.
            block = b"\x82\x86\x04" + text(path) + b"\x01" + text("x")
            data += frame(1, 5, 2 * i + 1, block)
        s.sendall(data)
        return s

    def open(self, path, headers="", method="GET", n=0):
        """Sends a request and returns the socket."""
        s = socket.create_connection(("127.0.0.1", self.port(n)), PATIENCE)
        s.sendall(f"{method} {path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n".encode())
        return s


def region(service):
    """What the region of a service says; see region_reader.cc."""
    done = subprocess.run([READER, service], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise AssertionError(f"region_reader {service}: {done.stderr}")
    return json.loads(done.stdout)


def drained(service):
    """Waits until nothing is inflight or waiting; returns the region."""
    def look():
        seen = region(service)
        return seen if not (seen["inflight"] or seen["waiting"]) else None
    return until(look, f"`{service}` has nothing inflight")


class Flood:
    """Clients on kept-alive connections in a thread: closed loop, or at a rate.

    Each request is for `path` with the headers of a class, chosen in turn.
    Connections that break are made anew.
    """

    def __init__(self, port, path, clients, headers=("",), rate=None):
        self.results = []  # (index into headers, status or 0), as they come.
        self.errors = []
        self._request = [f"GET {path} HTTP/1.1\r\nHost: x\r\n{h}\r\n".encode()
                         for h in headers]
        self._port, self._clients, self._rate = port, clients, rate
        self._stop = False
        self._next = 0
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._run()), daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop = True
        self._thread.join()

    async def _run(self):
        self._begun = time.monotonic()
        await asyncio.gather(*(self._client() for _ in range(self._clients)))

    async def _client(self):
        reader = writer = None
        while not self._stop:
            n = self._next
            self._next += 1
            if self._rate:
                wait = self._begun + n / self._rate - time.monotonic()
                if wait > 0:
                    await asyncio.sleep(wait)
            kind = n % len(self._request)
            try:
                if writer is None:
                    reader, writer = await asyncio.open_connection(
                        "127.0.0.1", self._port)
                writer.write(self._request[kind])
                head = await reader.readuntil(b"\r\n\r\n")
                size = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
                await reader.readexactly(size)
                self.results.append((kind, int(head[9:12])))
                if b"connection: close" in head.lower():
                    writer.close()
                    writer = None
            except (OSError, asyncio.IncompleteReadError) as error:
                self.errors.append((time.monotonic(), repr(error)))
                self.results.append((kind, 0))
                if writer is not None:
                    writer.close()
                reader = writer = None
        if writer is not None:
            writer.close()
