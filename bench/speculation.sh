#!/usr/bin/env bash
# What speculation gains, as JSON lines and Markdown tables:
#   bench/speculation.sh BIN_DIR OUT_DIR PART... [-- OPTION...]
# PART: policy      bundled target, every drafter, batch 1, 4, 16: adaptive against off and fixed K
#       shape       1B-shape target, 68M-shape draft model, synthetic rates: adaptive against off
#       acceptance  bundled target: mean length, rates by position and speed-up by category
#       gpu         Llama-3-8B shape on a GPU: none, EAGLE head, 68M-shape draft model
# OPTION: as `bench/speculation.py --help` lists them, such as --pairs 15 or --workloads FOLDER.
# The machine must be idle.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
[[ $# -ge 3 ]] || { sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 2; }
bin=$1 out=$2
shift 2
parts=()
while [[ $# -gt 0 && $1 != -- ]]; do parts+=("$1"); shift; done
[[ $# -gt 0 ]] && shift
for part in "${parts[@]}"; do
  python3 "$here/speculation.py" --bin "$bin/foretoken" --out "$out" "$part" "$@"
done
