# Replays the logs of this folder as golden.expected has it.
# Usage: run.sh WEIR
set -f  # Patterns are for weir.
weir=$1
for options in "weir.log" "weir.log --workers 4 --deadline 250ms --class /orders*=deferrable --routes 1" \
    "combined.log" "combined.log --time 20ms --to 2024-05-01T00:00:05+02:00" "--format \$msec weir.log" \
    "weir.log --seeds 1-3" "weir.log --sim --report out.html" "weir.log --policy missing.toml"; do
  echo "\$ weir replay $options"
  # shellcheck disable=SC2086  # Several options.
  "$weir" replay $options 2>&1
  echo "exit status $?"
done
echo "\$ gzip -c weir.log | weir replay -"
printf '\037\213\010\000' | "$weir" replay - 2>&1
echo "exit status $?"
