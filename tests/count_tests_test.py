"""scripts/count-tests counts cases, and misses no failure."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(os.environ.get("WEIR_SOURCE_DIR") or
                    pathlib.Path(__file__).resolve().parent.parent)


def case(result="COMPLETED", status="RUN", failures=()):
    one = {"name": "X", "status": status, "result": result}
    if failures:
        one["failures"] = [{"failure": text} for text in failures]
    return one


class CountTestsTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def count(self, programs):
        """programs: name -> (ctest's status, cases or None, output)."""
        entries = ""
        for name, (status, cases, output) in programs.items():
            entries += (f'<testcase name="{name}" status="{status}">'
                        f"<system-out>{output}</system-out></testcase>")
            if cases is not None:
                (self.folder / f"{name}.json").write_text(
                    json.dumps({"testsuites": [{"testsuite": cases}]}))
        junit = self.folder / "junit.xml"
        junit.write_text(f"<testsuite>{entries}</testsuite>")
        return self.run_on(junit)

    def run_on(self, junit):
        done = subprocess.run([ROOT / "scripts/count-tests", junit, self.folder],
                              check=True, capture_output=True, text=True)
        return [int(word) for word in done.stdout.split()]

    def test_cases_are_counted_and_not_programs(self):
        self.assertEqual(self.count({"a": ("run", [case(), case()], ""),
                                     "b": ("run", [case()], "")}), [3, 0, 0])

    def test_failed_skipped_and_disabled_cases_are_told_apart(self):
        cases = [case(), case(failures=["no"]), case(result="SKIPPED"),
                 case(result="SUPPRESSED", status="NOTRUN")]
        self.assertEqual(self.count({"a": ("fail", cases, "")}), [1, 1, 1])

    def test_a_program_that_crashed_after_its_cases_passed_is_a_failure(self):
        self.assertEqual(self.count({"a": ("fail", [case()], "")}), [1, 1, 0])

    def test_a_program_without_a_report_is_one_case(self):
        self.assertEqual(self.count({"a": ("run", None, ""), "b": ("fail", None, "")}),
                         [1, 1, 0])

    def test_cases_of_python_programs_are_counted(self):
        self.assertEqual(
            self.count({"a": ("run", None, "....s\nRan 5 tests in 0.1s\n\nOK (skipped=1)"),
                        "b": ("fail", None, "Ran 4 tests in 2s\n\nFAILED (failures=1, errors=1)")}),
            [6, 2, 1])

    def test_a_ctest_that_could_not_run_is_a_failure(self):
        self.assertEqual(self.run_on(self.folder / "none.xml"), [0, 1, 0])


if __name__ == "__main__":
    unittest.main()
