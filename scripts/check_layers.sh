#!/usr/bin/env bash
# Data flows one way: a folder of src/ includes only from itself and from folders that come before it in the list of
# add_subdirectory() in the top CMakeLists.txt. Prints every include that goes the other way.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t layers < <(sed -n 's|^ *add_subdirectory(src/\([a-z_/]*\)).*|\1|p' CMakeLists.txt)

rank_of() {
  local i
  for i in "${!layers[@]}"; do
    if [[ "$1" == "${layers[$i]}"/* ]]; then
      echo "$i"
      return
    fi
  done
  echo -1
}

faults=0
while IFS=: read -r file line include; do
  included=${include#*\"}
  included=${included%%\"*}
  theirs=$(rank_of "$included")
  [ "$theirs" -ge 0 ] || continue
  ours=$(rank_of "${file#src/}")
  if [ "$theirs" -gt "$ours" ]; then
    echo "$file:$line: includes $included, which lies to its right in the data flow"
    faults=1
  fi
done < <(git grep -n '^#include "' -- src)

if git grep -n '^#include "' -- include | grep -v '#include "qpn8/'; then
  echo "a public header includes a private one"
  faults=1
fi
exit "$faults"
