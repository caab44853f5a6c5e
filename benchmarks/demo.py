"""What `weir up --demo` shows, as figures: medians of several whole runs.

DEMO_RUNS=5 makes it five; the order of a run is the protected port first.
"""

import json
import os
import statistics
import subprocess
import sys

WEIR = os.path.join(os.environ["WEIR_BUILD"], "cli/weir")
RUNS = int(os.environ.get("DEMO_RUNS", "3"))


def phase(report, name):
    return next(one for one in report["phases"] if one["name"] == name)


def ratio(part, whole):
    return part / whole if whole else 0.0


def figures(result):
    """Yields metric, value and unit of one run."""
    for side, report in result.items():
        calm, flood, after = (phase(report, name) for name in ("calm", "flood", "after"))
        vital = report["classes"][0]
        yield f"flood_goodput_ratio_{side}", flood["goodput_ratio"], "ratio"
        yield f"vital_good_ratio_{side}", ratio(vital["good"], vital["offered"]), "ratio"
        yield f"calm_shed_ratio_{side}", ratio(calm["shed"], calm["offered"]), "ratio"
        yield f"after_good_ratio_{side}", ratio(after["good"], after["offered"]), "ratio"
        yield f"calm_p99_{side}", calm["latency_ms"]["p99"], "ms"
        yield f"flood_p99_{side}", flood["latency_ms"]["p99"], "ms"
        if report.get("recover_ms") is not None:
            yield f"recover_{side}", report["recover_ms"], "ms"


def main():
    values = {}
    for run in range(RUNS):
        print(f"  run {run + 1} of {RUNS}", file=sys.stderr, flush=True)
        # Status 1 is a broken bound of the scenario; the figures say it better.
        done = subprocess.run([WEIR, "up", "--demo", "--json"], stdout=subprocess.PIPE, text=True)
        lines = done.stdout.splitlines()
        if done.returncode > 1 or not lines or not lines[-1].startswith("{"):
            sys.exit(f"weir: the demonstration failed with status {done.returncode}")
        for metric, value, unit in figures(json.loads(lines[-1])):
            values.setdefault((metric, unit), []).append(value)
    print(json.dumps({"name": "demo", "results": [
        {"metric": metric, "value": statistics.median(all_), "unit": unit,
         "runs": len(all_), "min": min(all_), "max": max(all_)}
        for (metric, unit), all_ in values.items()]}))


main()
