#!/usr/bin/env bash
# Checks what no compiler checks: formatting, the direction of includes, clang-tidy. The files of the CUDA backend only where
# build/cuda-check is configured.
# scripts/lint.sh [--fast]: without clang-tidy, which takes minutes.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t sources < <(git ls-files -- '*.cpp' '*.hpp' '*.cu' '*.cuh')
clang-format --dry-run --Werror "${sources[@]}"
scripts/check_layers.sh

# tidy BUILD [OPTION ...]: clang-tidy over the files on stdin, as BUILD compiles them.
tidy() {
  local build=$1
  shift
  xargs -r -P "$(nproc)" -n 1 clang-tidy --quiet -p "$build" --extra-arg=-Wno-unknown-warning-option "$@"
}

if [ "${1:-}" != --fast ]; then
  # The files of a folder are parsed and checked together, which takes a tenth of the time; that they include each other
  # is no finding then.
  cmake --preset tidy >/dev/null
  sed -n 's#.*"file": "\(.*/\(src\|examples\)/.*\)".*#\1#p' build/tidy/compile_commands.json | grep -v /embedded_ |
    tidy build/tidy --checks=-bugprone-suspicious-include
  if [ -e build/cuda-check/compile_commands.json ]; then
    git ls-files -- 'src/*/cuda/*.cpp' src/measure/gpu_probe.cpp | tidy build/cuda-check
  fi
fi
