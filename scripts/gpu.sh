#!/usr/bin/env bash
# scripts/gpu.sh [--build DIR] [--out DIR] [--like MODEL] [--sanitize]: builds, tests and times qpn8 on a machine with an
# NVIDIA GPU and leaves the evidence in DIR (out/gpu unless --out says otherwise).
#   --build DIR  uses what is built there already (by `cmake --preset cuda`), on this machine or another
#   --like MODEL is the published model whose shapes are decoded (qwen3-8b)
#   --sanitize   repeats the operator tests under compute-sanitizer, which takes minutes
set -euo pipefail
cd "$(dirname "$0")/.."

build=
out=out/gpu
like=qwen3-8b
sanitize=no
while [ $# -gt 0 ]; do
  case "$1" in
    --build) build=$2; shift 2 ;;
    --out) out=$2; shift 2 ;;
    --like) like=$2; shift 2 ;;
    --sanitize) sanitize=yes; shift ;;
    *) echo "gpu.sh: $1: unexpected; see the top of the script" >&2; exit 2 ;;
  esac
done
step() { printf '\n== %s (%s s)\n' "$1" "$SECONDS"; }
mkdir -p "$out"

step "Machine"
nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm,clocks.mem --format=csv | tee "$out/machine.csv"

if [ -z "$build" ]; then
  step "Build"
  scripts/build.sh cuda qpn8 qpn8_cuda_test
  build=build/cuda
fi
qpn8=$build/qpn8
tests=$build/tests/cuda/qpn8_cuda_test

failed=0
step "Tests"
"$tests" --gtest_brief=1 2>&1 | tee "$out/tests.txt" || failed=1

if [ "$sanitize" = yes ]; then
  for tool in memcheck racecheck initcheck; do
    step "compute-sanitizer $tool"
    compute-sanitizer --tool "$tool" --error-exitcode 1 "$tests" --gtest_brief=1 --gtest_filter=-*Replay*:*Golden* \
      2>&1 | tail -20 | tee "$out/$tool.txt" || failed=1
  done
fi

step "A synthetic $like"
model=$(mktemp -d)
trap 'rm -rf "$model"' EXIT
"$qpn8" synth --like "$like" --dtype f16 --out "$model" >"$out/synth.txt"
for route in auto off auto off; do
  step "Decode, --qpn8 $route"
  "$qpn8" run --device cuda --model "$model" --qpn8 "$route" --prompt-ids 1,2,3,4,5,6,7,8 --max-tokens 256 \
    --ignore-eos --engine-arg max_model_len=4096 --json >>"$out/decode_$route.jsonl" || failed=1
  tail -n 1 "$out/decode_$route.jsonl" | grep -o '"decode_tokens_per_s": *[0-9.]*' || true
done

step "Done"
exit "$failed"
