#!/usr/bin/env bash
# Sets up what is missing, builds, and compares the QPN8 route with the dense one on the bundled model.
# scripts/demo.sh [ITEMS]: all 512 test problems if no number is given, which takes a minute or two.
set -euo pipefail
cd "$(dirname "$0")/.."

items=${1:-512}
scripts/setup.sh
scripts/build.sh release qpn8
build/release/qpn8 ab --model models/wordmath-11m --dataset models/wordmath_test.jsonl \
  --a qpn8=off --b qpn8=auto --limit "$items" --out out/demo --overwrite
echo "Everything that was measured: out/demo/result.json; item by item: out/demo/items.jsonl"
