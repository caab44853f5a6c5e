"""weir verify, with the real nginx: one scenario in both worlds."""

import json
import os
import subprocess
import tempfile
import unittest

from harness import BUILD, ROOT
import runner

WEIR = BUILD / "cli/weir"
SCENARIO = ROOT / "tests/scenarios/short-flood.toml"


class VerifyTest(unittest.TestCase):

    def verify(self, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            return subprocess.run([WEIR, "verify", SCENARIO, "--json", *arguments],
                                  env={**os.environ, "XDG_RUNTIME_DIR": folder},
                                  capture_output=True, text=True, timeout=120)

    def test_both_worlds_get_the_same_requests(self):
        for _ in range(3):  # It says so when the machine was too busy to tell.
            done = self.verify("--latency-tolerance", "10", "--goodput-tolerance", ".5")
            if "not to be trusted" not in done.stderr:
                break
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        self.assertIs(result["agrees"], True)
        simulated, real = result["simulated"][0], result["real"][0]
        self.assertEqual(simulated["offered"], real["offered"])
        self.assertEqual([phase["offered"] for phase in simulated["phases"]],
                         [phase["offered"] for phase in real["phases"]])
        whole = {f["figure"]: f for f in result["figures"] if f["phase"] == "all"}
        self.assertEqual(list(whole), ["goodput", "p50 ms", "p99 ms"])
        for one in whole.values():
            self.assertAlmostEqual(one["difference"], one["simulated"] / one["real"] - 1)


if __name__ == "__main__":
    runner.main("e2e_verify_test")
