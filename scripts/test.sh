#!/usr/bin/env bash
# Sets up, builds, and runs every test: release, lint, sanitizers, fuzz targets for a short while. From a clean clone.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n== %s (%s s)\n' "$1" "$SECONDS"; }

step "Set-up"
scripts/setup.sh

step "Lint (formatting and layers; scripts/lint.sh adds clang-tidy, which takes many minutes)"
scripts/lint.sh --fast

step "Build (release)"
scripts/build.sh release

step "Tests (release)"
ctest --preset release

nvcc=$(command -v nvcc || command -v /usr/local/cuda/bin/nvcc || true)
if [ -n "$nvcc" ]; then
  step "Compile (CUDA; its tests need a GPU, see scripts/gpu.sh)"
  # Only what the release build did not compile already: the kernels, the files that call CUDA, the tests.
  mapfile -t objects < <(git ls-files 'src/backend/cuda/*.cpp' src/measure/gpu_probe.cpp |
    sed -E 's|^src/([^/]+)/(.*)$|src/\1/CMakeFiles/qpn8_\1.dir/\2.o|')
  CUDACXX=$nvcc scripts/build.sh cuda-check qpn8_kernels_cuda qpn8_cuda_test_objects "${objects[@]}"
fi

step "Compile (CUDA, sm_70)"
scripts/sm70.sh

step "Build (address and undefined-behaviour sanitizers)"
scripts/build.sh asan

step "Tests (address and undefined-behaviour sanitizers)"
ctest --preset asan

step "Fuzz targets"
scripts/fuzz.sh 10

step "All passed"
