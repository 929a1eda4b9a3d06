#!/usr/bin/env bash
# scripts/build.sh [PRESET] [TARGET ...]: configures and builds into build/PRESET (release if none is named).
set -euo pipefail
cd "$(dirname "$0")/.."

preset=${1:-release}
shift || true
cmake --preset "$preset" >/dev/null
cmake --build --preset "$preset" ${1:+--target "$@"}
