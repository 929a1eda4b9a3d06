#!/usr/bin/env bash
# scripts/fuzz.sh [SECONDS]: runs every fuzz target on its seed corpus for that long (10 if not given). What they find is
# left in build/fuzz/findings.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-10}
mkdir -p build/fuzz/findings
for target in build/asan/fuzz/*_fuzz; do
  name=$(basename "$target")
  mkdir -p "build/fuzz/corpus/$name"
  echo "$name: $seconds s"
  "$target" -seed=1 -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -verbosity=0 \
    -artifact_prefix=build/fuzz/findings/ "build/fuzz/corpus/$name" "fuzz/corpus/$name"
done
