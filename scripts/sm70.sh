#!/usr/bin/env bash
# Compiles the sm_70 kernels to machine code and checks that they use the tensor cores of that architecture (HMMA.884).
#
# CUDA 13 no longer generates sm_70 code, and Debian 12 has no CUDA. The compiler therefore comes from PyPI: NVRTC 12.9,
# the library with which programs compile CUDA at run time, some 90 MB, kept in build/sm70. It is a tool of this check;
# nothing of it goes into qpn8. Without a network (or pip) the check is skipped, and says so.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=build/sm70
package=nvidia-cuda-nvrtc-cu12==12.9.86
library=$folder/nvidia/cuda_nvrtc/lib/libnvrtc.so.12

if [ ! -e "$library" ]; then
  if [ "$(uname -m)" != x86_64 ]; then
    echo "sm70.sh: skipped: $package is fetched for x86-64 alone"
    exit 0
  fi
  if ! python3 -m pip --version >/dev/null 2>&1; then
    echo "sm70.sh: skipped: python3 has no pip to fetch $package with"
    exit 0
  fi
  # Downloaded and unpacked, not installed: nothing outside build/ changes.
  if ! python3 -m pip download --quiet --no-deps --disable-pip-version-check --dest "$folder" "$package"; then
    echo "sm70.sh: skipped: $package could not be fetched"
    exit 0
  fi
  python3 -m zipfile -e "$folder"/nvidia_cuda_nvrtc_cu12-*.whl "$folder"
  rm "$folder"/nvidia_cuda_nvrtc_cu12-*.whl
fi

kernels=()
for kernel in quad_pair quad_pair_gate_up; do
  for chains in 1 2 4; do
    for prefetch in false true; do
      for block_scales in false true; do
        kernels+=("qpn8::cuda::$kernel<$chains, $prefetch, $block_scales>")
      done
    done
  done
done

python3 scripts/nvrtc_cubin.py "$library" src/kernels/cuda/qpn8_quad_pair.cuh "$folder/quad_pair.cubin" sm_70 \
  "${kernels[@]}"
python3 scripts/count_hmma.py "$folder/quad_pair.cubin"
