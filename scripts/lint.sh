#!/usr/bin/env bash
# Checks what no compiler checks: formatting, the direction of includes, clang-tidy. The files of the CUDA backend only where
# build/cuda-check is configured.
# scripts/lint.sh [--fast]: without clang-tidy, which takes minutes.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t sources < <(git ls-files -- '*.cpp' '*.hpp' '*.cu' '*.cuh')
clang-format --dry-run --Werror "${sources[@]}"
scripts/check_layers.sh

# tidy BUILD: clang-tidy over the files on stdin, as BUILD compiles them.
tidy() {
  xargs -r -P "$(nproc)" -n 4 clang-tidy --quiet -p "$1" --extra-arg=-Wno-unknown-warning-option
}

if [ "${1:-}" != --fast ]; then
  cmake --preset debug >/dev/null  # the release build's precompiled headers are g++'s
  git ls-files -- 'src/*.cpp' 'examples/*.cpp' | grep -v -e /cuda/ -e measure/gpu_probe.cpp | tidy build/debug
  if [ -e build/cuda-check/compile_commands.json ]; then
    git ls-files -- 'src/*/cuda/*.cpp' src/measure/gpu_probe.cpp | tidy build/cuda-check
  fi
fi
