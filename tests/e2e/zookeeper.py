"""A real ZooKeeper on a free port of the loopback."""

import contextlib
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile

from harness import PATIENCE, end_with_parent, free_port, until

CLASSES = "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-nop.jar"


class ZooKeeper:
    """One server; sessions that are silent for half a second to five expire."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-zookeeper."))
        self.port = free_port()
        (self.folder / "zoo.cfg").write_text(f"""
tickTime=250
dataDir={self.folder}/data
clientPort={self.port}
clientPortAddress=127.0.0.1
admin.enableServer=false
4lw.commands.whitelist=ruok
""")
        self._process = None
        self.start()

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def start(self):
        self._process = subprocess.Popen(
            ["java", "-Xmx64m", "-XX:TieredStopAtLevel=1", "-cp", CLASSES,
             "org.apache.zookeeper.server.quorum.QuorumPeerMain",
             str(self.folder / "zoo.cfg")],
            cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=end_with_parent)
        until(lambda: self._process.poll() is not None or self._is_ok(),
              "ZooKeeper is ready", patience=4 * PATIENCE)
        if self._process.poll() is not None:
            raise AssertionError("ZooKeeper did not start")

    def _is_ok(self):
        with contextlib.suppress(OSError):
            with socket.create_connection(("127.0.0.1", self.port), 1) as s:
                s.sendall(b"ruok")
                return s.recv(4) == b"imok"
        return False

    def kill(self):
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def forget(self):
        """Loses all data, sessions too; while it is not running."""
        shutil.rmtree(self.folder / "data")

    def stop(self):
        if self._process.poll() is None:
            self.kill()
        shutil.rmtree(self.folder)
