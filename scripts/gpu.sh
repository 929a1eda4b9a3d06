#!/usr/bin/env bash
# scripts/gpu.sh [--build DIR] [--out DIR] [--like MODEL] [--skip STEP,...]: builds, tests, checks and times qpn8 on a
# machine with an NVIDIA GPU and leaves the evidence in DIR (out/gpu unless --out says otherwise). Some five minutes on 16
# cores and an H200. Exit status 1 if a step failed; all are tried.
#   --build DIR  uses what is built there already (by `cmake --preset cuda`), on this machine or another
#   --like MODEL is the published model whose shapes are decoded (qwen3-8b)
#   --skip       any of tests, sanitize, gate, operators, decode, ab
set -euo pipefail
cd "$(dirname "$0")/.."

build=
out=out/gpu
like=qwen3-8b
skip=
while [ $# -gt 0 ]; do
  case "$1" in
    --build) build=$2; shift 2 ;;
    --out) out=$2; shift 2 ;;
    --like) like=$2; shift 2 ;;
    --skip) skip=$2; shift 2 ;;
    *) echo "gpu.sh: $1: unexpected; see the top of the script" >&2; exit 2 ;;
  esac
done
mkdir -p "$out"
failed=0

# step NAME TITLE: says what begins; false if it is to be skipped.
step() {
  case ",$skip," in *",$1,"*) return 1 ;; esac
  printf '\n== %s (%s s)\n' "$2" "$SECONDS"
}
fail() { echo "gpu.sh: $1: failed" >&2; failed=1; }

step machine "Machine"
nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm,clocks.mem --format=csv | tee "$out/machine.csv"

if [ -z "$build" ]; then
  step build "Build"
  scripts/build.sh cuda
  build=build/cuda
fi
qpn8=$build/qpn8

if step tests "Tests"; then
  ctest --test-dir "$build" -j "$(nproc)" --output-on-failure >"$out/tests.txt" 2>&1 || fail tests
  sed -n '/tests passed/,$p' "$out/tests.txt"
fi

if step gate "Audit and gate"; then
  "$qpn8" audit --gate --device cuda --model models/wordmath-11m --out "$out/audit" >"$out/audit.txt" 2>&1 || fail gate
  tail -n 12 "$out/audit.txt"
fi

if step operators "Operators and the parts of a step"; then
  "$build/bench/qpn8_cuda_step_bench" | tee "$out/step.md" || fail step
  "$build/bench/qpn8_cuda_linear_bench" >"$out/linear.md" || fail linear
  cat "$out/linear.md"
fi

if step decode "Decode of a synthetic $like"; then
  model=$(mktemp -d)
  trap 'rm -rf "$model"' EXIT
  "$qpn8" synth --like "$like" --dtype f16 --out "$model" >"$out/synth.txt"
  "$qpn8" bench --device cuda --model "$model" --parts decode --contexts 128 --json >"$out/bench_decode.json" || fail bench
  sed -n '/^  "decode": /,/^  \]/p' "$out/bench_decode.json"
fi

if step ab "A/B of the bundled model"; then
  "$qpn8" ab --device cuda --model models/wordmath-11m --dataset models/wordmath_test.jsonl --a qpn8=off --b qpn8=on \
    --out "$out/ab" >"$out/ab.txt" || fail ab
  cat "$out/ab.txt"
fi

# The kernel tests that a checker ends within minutes, without the ones over every form and shape. None has more than 8
# rows: beyond that products are cuBLAS's, in whose kernels racecheck and initcheck report what is not ours to mend.
if step sanitize "compute-sanitizer"; then
  kernels='CudaStep.Products*:CudaStep.Gated*:CudaOperators.*:CudaAttention.Preparing*:Qpn8CudaLinear.TheSame*'
  kernels+=':Qpn8CudaLinear.Groups*:Qpn8CudaLinear.Bias*:QuadPair.Products*:QuadPair.TheFused*:QuadPair.TheRider*'
  declare -A running
  for tool in memcheck racecheck initcheck; do
    timeout 300 compute-sanitizer --tool "$tool" --error-exitcode 1 "$build/tests/cuda/qpn8_cuda_test" \
      --gtest_brief=1 --gtest_filter="$kernels" >"$out/$tool.txt" 2>&1 &
    running[$tool]=$!
  done
  for tool in "${!running[@]}"; do
    wait "${running[$tool]}" || fail "$tool"
    printf '%s: ' "$tool"
    tail -n 1 "$out/$tool.txt"
  done
fi

step done "Done"
exit "$failed"
