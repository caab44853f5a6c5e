"""Runs the cases of a program and tells scripts/count-tests about each."""

import json
import sys
import time
import unittest

from harness import BUILD


class _Result(unittest.TextTestResult):

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.cases = []

    def startTest(self, test):
        super().startTest(test)
        self._begun = time.monotonic()

    def stopTest(self, test):
        super().stopTest(test)
        failures = [text for failed, text in self.failures + self.errors
                    if failed is test]
        skipped = any(case is test for case, _ in self.skipped)
        case = {"name": test.id().split(".", 1)[1], "status": "RUN",
                "result": "SKIPPED" if skipped else "COMPLETED",
                "time": f"{time.monotonic() - self._begun:.3f}s"}
        if failures:
            case["failures"] = [{"failure": text} for text in failures]
        self.cases.append(case)


def main(name):
    program = unittest.main(exit=False, testRunner=unittest.TextTestRunner(
        resultclass=_Result, verbosity=2))
    folder = BUILD / "test-results"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(
        {"testsuites": [{"testsuite": program.result.cases}]}))
    sys.exit(not program.result.wasSuccessful())
