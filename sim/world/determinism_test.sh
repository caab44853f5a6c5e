#!/bin/bash
# Same seed, same bytes: builds a small world with g++ and clang++ at -O0 and
# -O3 and compares all decisions and figures.
#
#   determinism_test.sh SOURCE_DIR
set -euo pipefail

root=$1
out=$(mktemp -d "${TMPDIR:-/tmp}/weir-determinism.XXXXXX")
trap 'rm -rf "$out"' EXIT

# What the project compiles its own sources with; warnings are its business.
flags=(-std=c++20 -ffp-contract=off -w -I"$root/include")
for folder in sim/engine sim/scenario sim/world sim/rivals src/config; do
  flags+=(-I"$root/$folder/include")
done
flags+=(-I"$root/src/core" -I"$root/sim/world" -I"$root/sim/scenario")
# The guard alone: rivals and what reads files need not be built.  A folder is
# one source, which takes a fifth of the time.
parts=(src/core sim/engine sim/scenario sim/world)
for folder in "${parts[@]}"; do
  find "$root/$folder" -name '*.cc' ! -name '*_test.cc' \
    ! -name 'read*.cc' ! -name 'write*.cc' ! -path '*/testing/*' ! -name 'algorithms.cc' \
    ! -name 'rival_gate.cc' ! -name 'bounded_queue.cc' ! -name 'study.cc' |
    sort | sed 's/.*/#include "&"/' > "$out/$(basename "$folder").cc"
done

launcher=$(command -v ccache || true)
for compiler in g++ clang++-14; do
  command -v "$compiler" > /dev/null || { echo "no $compiler"; exit 77; }
  for level in -O0 -O3; do
    name=$compiler$level
    mkdir "$out/$name"
    printf '%s\n' "${parts[@]##*/}" | xargs -P2 -I{} \
      $launcher "$compiler" "$level" "${flags[@]}" -c "$out/{}.cc" -o "$out/$name/{}.o"
    "$compiler" "$level" "$out/$name"/*.o -lfmt -lpthread -o "$out/$name.exe"
    "$out/$name.exe" > "$out/$name.txt"
    echo "$name: $(cut -c1-40 "$out/$name.txt" | head -1)"
    cmp "$out/g++-O0.txt" "$out/$name.txt"
  done
done
