# What run, test and bench share.  Sourced by them; sets the working directory
# to the project and WEIR_BUILD to the build tree that programs come from.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export WEIR_BUILD="$PWD/build/release"
readonly logs="$PWD/build/logs"

# All words of these scripts go to the standard error: what a program that they
# end in prints to the standard output is its own (`./run --demo --json`).
say() { printf '%s\n' "$*" >&2; }
die() { say "weir: $*"; exit 1; }

# step NAME COMMAND...: runs the command with its output in build/logs/NAME.log
# and says how long it took; when it fails, shows the log.  On a terminal the
# last line of the log is shown while it runs.
step() {
  local name=$1 log="$logs/${1// /-}.log" status=0 begun=$SECONDS
  shift
  mkdir -p "$logs"
  if [[ -t 2 ]]; then
    "$@" >"$log" 2>&1 &
    local pid=$!
    trap 'kill $pid 2>/dev/null; wait $pid 2>/dev/null; exit 130' INT TERM
    while kill -0 "$pid" 2>/dev/null; do
      printf '\r\e[K%s: %.60s' "$name" "$(tail -n 1 "$log" | tr -d '\r\e')" >&2
      sleep 0.2
    done
    wait "$pid" || status=$?
    trap - INT TERM
    printf '\r\e[K' >&2
  else
    "$@" >"$log" 2>&1 || status=$?
  fi
  step_seconds=$((SECONDS - begun))
  if ((status != 0)); then
    say "$name: failed after $step_seconds s; the end of $log:"
    tail -n 100 "$log" >&2
    return "$status"
  fi
  # What took no time is not worth a line.
  ((step_seconds < 2)) || say "$name: $step_seconds s"
}

# build PRESET [TARGET...]: configures once and builds; without targets all.
build() {
  local preset=$1
  shift
  [[ -f build/$preset/build.ninja ]] ||
    step "configure $preset" cmake --preset "$preset" || return
  step "build $preset" cmake --build "build/$preset" ${*:+--target "$@"}
}
