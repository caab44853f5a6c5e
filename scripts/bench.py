"""Runs benchmarks and puts their results together; ./bench is the way in.

benchmarks/README.md has what a benchmark is and prints.
"""

import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ["WEIR_BUILD"])
FIELDS = {"metric": str, "value": (int, float), "unit": str, "runs": int,
          "min": (int, float), "max": (int, float)}


def benchmarks():
    """Returns what there is: name -> command."""
    found = {}
    for path in sorted((BUILD / "benchmarks").glob("*_bench")):
        found[path.name.removesuffix("_bench")] = [str(path)]
    for path in sorted((ROOT / "benchmarks").iterdir()):
        if path.suffix == ".py":
            found[path.stem] = [sys.executable, str(path)]
        elif path.suffix == ".sh":
            found[path.stem] = ["bash", str(path)]
    return found


def machine():
    cpu = platform.machine()
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.split(":", 1)[1].strip()
            break
    return f"{cpu}, {os.cpu_count()} cores, {platform.system()} {platform.release()}"


def results_of(name, output):
    """Returns the results of a benchmark's last line, or says what is wrong."""
    lines = output.strip().splitlines()
    try:
        results = json.loads(lines[-1])["results"]
        for result in results:
            for field, kind in FIELDS.items():
                if not isinstance(result[field], kind):
                    raise ValueError(f"{field} is {result[field]!r}")
    except (IndexError, KeyError, TypeError, ValueError) as error:
        sys.exit(f"weir: bench {name}: its last line is no result ({error!r})")
    return results


def number(value):
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def main():
    parser = argparse.ArgumentParser(prog="bench", description="Measures.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    parser.add_argument("--json", action="store_true",
                        help="print one object with all results as the last line")
    options = parser.parse_args()
    known = benchmarks()
    for name in options.names:
        if name not in known:
            sys.exit(f"weir: no benchmark `{name}`; there are: {', '.join(known)}")

    everything = []
    for name in options.names or known:
        print(f"bench {name}", file=sys.stderr, flush=True)
        done = subprocess.run(known[name], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f"weir: bench {name} failed with status {done.returncode}")
        results = results_of(name, done.stdout)
        width = max([len(result["metric"]) for result in results], default=0)
        for r in results:
            print(f"  {r['metric']:<{width}} {number(r['value']):>12} {r['unit']:<12}"
                  f" {number(r['min'])} .. {number(r['max'])}, {r['runs']} runs", flush=True)
        everything += results
    if options.json:
        print(json.dumps({"name": " ".join(options.names) or "all",
                          "machine": machine(), "results": everything}))


main()
