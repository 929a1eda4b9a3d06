#!/usr/bin/env bash
# Makes the evidence of this machine's CPU contract: audits both bundled models, and compares the QPN8 route with the dense
# one on all 512 test problems, greedy and with three seeds at temperature 0.7.
# scripts/evidence.sh [--resume]: with --resume, comparisons that an earlier call left unfinished go on.
# Writes evidence/HARDWARE/NAME/, HARDWARE as `qpn8 plan` names it; item by item the outputs are in out/evidence/. Takes some
# minutes. Every run is made, whatever the others say; the exit status is 1 if an audit failed or a verdict was inferior.
set -euo pipefail
cd "$(dirname "$0")/.."

start=--overwrite
if [ "${1:-}" = --resume ]; then start=--resume; fi

scripts/build.sh release qpn8
qpn8=build/release/qpn8
hardware=$("$qpn8" plan --model models/wordmath-3m --json | sed -n 's/.*"hardware": *"\([^"]*\)".*/\1/p' | head -n 1)
folder=evidence/${hardware:?"qpn8 plan names no hardware"}
status=0

# Runs one check; its failure is remembered, an error of another kind ends the script.
check() {
  local result=0
  "$@" || result=$?
  if [ "$result" -gt 1 ]; then exit "$result"; fi
  if [ "$result" -ne 0 ]; then status=1; fi
}

compare() {
  local model=$1 name=$2
  shift 2
  local run=out/evidence/$hardware/$name
  printf '\n== %s\n' "$name"
  check "$qpn8" ab --model "models/$model" --dataset models/wordmath_test.jsonl --a qpn8=off --b qpn8=require \
    --out "$run" "$start" "$@"
  mkdir -p "$folder/$name"
  cp "$run/result.json" "$run/report.md" "$run/report.html" "$folder/$name/"
}

for model in wordmath-11m wordmath-3m; do
  printf '\n== audit-%s\n' "$model"
  check "$qpn8" audit --model "models/$model" --gate --out "$folder/audit-$model"
  compare "$model" "ab-$model-greedy"
  compare "$model" "ab-$model-t0.7" --seeds 1,2,3 --temperature 0.7
done
exit "$status"
