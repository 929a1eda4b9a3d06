#!/usr/bin/env bash
# The one command of docs/performance.md: builds, makes a synthetic qwen3-0.6b with its full vocabulary (and one with half
# its layers), and measures both routes beside the machine's own speed. Prints every bar with what was seen.
# scripts/bench.sh [--check] [ARGUMENT ...]: arguments go to `qpn8 bench`. With --check it measures the bars of operators and
# decode alone and ends with status 1 if one of them does not hold.
# The models take 2 GB below QPN8_BENCH_DIR (out/bench if that is not set) and are made once.
set -euo pipefail
cd "$(dirname "$0")/.."

models=${QPN8_BENCH_DIR:-out/bench}
scripts/build.sh release qpn8
qpn8=build/release/qpn8
mkdir -p "$models"
[ -e "$models/qwen3-0.6b/config.json" ] || "$qpn8" synth --like qwen3-0.6b --out "$models/qwen3-0.6b"
if [ "${1:-}" = --check ]; then
  exec "$qpn8" bench --model "$models/qwen3-0.6b" "$@"
fi
[ -e "$models/qwen3-0.6b-half/config.json" ] || "$qpn8" synth --like qwen3-0.6b --layers 14 --out "$models/qwen3-0.6b-half"
exec "$qpn8" bench --model "$models/qwen3-0.6b" --growth-model "$models/qwen3-0.6b-half" "$@"
