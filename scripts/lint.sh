#!/usr/bin/env bash
# Checks what no compiler checks: formatting, the direction of includes, clang-tidy. Needs build/release configured.
# scripts/lint.sh [--fast]: without clang-tidy, which takes minutes.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t sources < <(git ls-files -- '*.cpp' '*.hpp' '*.cu' '*.cuh')
clang-format --dry-run --Werror "${sources[@]}"
scripts/check_layers.sh

if [ "${1:-}" != --fast ]; then
  git ls-files -- 'src/*.cpp' 'examples/*.cpp' | xargs -P "$(nproc)" -n 4 \
    clang-tidy --quiet -p build/release --extra-arg=-Wno-unknown-warning-option
fi
