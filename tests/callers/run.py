"""What the released gRPC clients make of weir's refusals.

    cmake --build build/release --target callers_server
    python3 tests/callers/run.py          # or with a folder

Installs grpcio, @grpc/grpc-js and google.golang.org/grpc into that folder, build/callers unless named, with
pip, npm and go as they are set up, so it is no part of ./test.  Then each of them plays each case
against real guarded servers, and a line says what became of it.  Exit status 1: one of them did not
do as docs/refusals.md says.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SERVER = pathlib.Path(os.environ.get("WEIR_BUILD") or ROOT / "build/release",
                      "tests/callers/callers_server")
PATIENCE = 60

# Retries after both codes of a refusal, with a backoff of a second.
POLICY = {"maxAttempts": 5, "initialBackoff": "1s", "maxBackoff": "1s", "backoffMultiplier": 1,
          "retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"]}


def service_config(**changes):
    return {"loadBalancingConfig": [{"round_robin": {}}],
            "methodConfig": [{"name": [{}], "retryPolicy": POLICY | changes}]}


def install(folder):
    """The clients: name -> command."""
    folder.mkdir(parents=True, exist_ok=True)
    python = folder / "venv/bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", "grpcio"], check=True)
    node = folder / "node"
    node.mkdir(exist_ok=True)
    subprocess.run(["npm", "install", "--silent", "--prefix", node, "@grpc/grpc-js"], check=True,
                   stdout=subprocess.DEVNULL)
    go = folder / "go"
    go.mkdir(exist_ok=True)
    shutil.copy(HERE / "go/main.go", go)
    if not (go / "go.mod").exists():
        subprocess.run(["go", "mod", "init", "callers"], cwd=go, check=True)
    subprocess.run(["go", "mod", "tidy"], cwd=go, check=True)
    subprocess.run(["go", "build", "-o", "call", "."], cwd=go, check=True)
    os.environ["NODE_PATH"] = str(node / "node_modules")
    return {"grpc-go": [go / "call"], "grpc-python": [python, HERE / "call.py"],
            "grpc-js": ["node", HERE / "call.js"]}


class Server:
    def __init__(self, policy):
        self._file = tempfile.NamedTemporaryFile("w", suffix=".toml")
        self._file.write('service = "callers"\ntrust.networks = ["127.0.0.0/8"]\n' + policy)
        self._file.flush()
        self._process = subprocess.Popen([SERVER, self._file.name], text=True,
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.target = "127.0.0.1:" + self._process.stdout.readline().split()[1]

    def end(self):
        """How many calls came to it."""
        rest, _ = self._process.communicate(timeout=PATIENCE)
        return int(rest.split()[1])


def play(command, servers, calls, deadline_ms, config=None, metadata=None):
    job = {"targets": [server.target for server in servers], "calls": calls,
           "deadline_ms": deadline_ms, "metadata": metadata or {},
           "service_config": config or service_config()}
    done = subprocess.run([*command, json.dumps(job)], check=True, text=True, timeout=PATIENCE,
                          stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def codes(ends):
    return [end["code"] for end in ends]


def soon(command):
    """Room in a moment: the caller's own backoff counts, not a push-back of milliseconds."""
    server = Server('[resource.Echo]\nquota = { calls = 1, window = "50ms", kind = "fixed" }\n')
    ends = play(command, [server], 4, 10_000)
    came = server.end()
    return codes(ends) == [0] * 4 and came <= 4 + 3 * 2, f"{ends}, {came} came"


def elsewhere(command):
    """One of two replicas is full and says so: all calls are answered by the other in time."""
    full = Server('answer.elsewhere = true\nsystem.qps = 1\n[resource.Echo]\n')
    idle = Server('[resource.Echo]\n')
    ends = play(command, [full, idle], 40, 1000,
                service_config(initialBackoff="0.02s", maxBackoff="0.02s"))
    came = full.end(), idle.end()
    answered = codes(ends).count(0)
    return answered == 40, f"{answered} of 40 answered, {came[0]} came to the full one"


def never(command):
    """Retries abound: who is told not to try again does not."""
    server = Server('system.qps = 1\n[resource.Echo]\n')
    play(command, [server], 400, 1000, {"methodConfig": []}, {"weir-attempt": "1"})
    ends = play(command, [server], 1, 5000)
    came = server.end()
    return codes(ends) == [8] and came == 401, f"{ends}, {came - 400} came"


def paused(command):
    """Told to come back after its deadline: it does not come before."""
    server = Server('[resource.Echo]\npaused = true\n')
    ends = play(command, [server], 1, 1500)
    came = server.end()
    return came == 1 and codes(ends)[0] in (4, 14), f"{ends}, {came} came"


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build/callers"
    passed = failed = 0
    for name, command in install(folder.resolve()).items():
        for case in (soon, elsewhere, never, paused):
            good, what = case(command)
            passed, failed = passed + good, failed + (not good)
            print(f"{name:12} {case.__name__:10} {'ok' if good else 'NOT AS IT SHOULD':17} {what}",
                  flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
