#!/usr/bin/env bash
# ms per output token at batch 1 for the shapes in bench/configs (random weights), on the GPU:
# (time for 272 tokens - time for 16) / 256 after a prompt of 128, as bench/results compares it.
#   bench/latency.sh BIN_DIR
# BIN_DIR holds foretoken and libforetoken_cuda.so. From the environment: SHAPES, folders of
# bench/configs (llama-68m llama-3-8b). Exits with 1 at the first run that fails, with 2
# for wrong arguments.
# "16 drafts" runs n-gram with K = 16 on random prompts, where drafts are rare: the step's bucket
# holds 32 rows, of which one is live; the difference to "none" is what dead rows cost.
set -euo pipefail
[[ $# -eq 1 ]] || { sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 2; }
configs=$(dirname "$(readlink -f "$0")")/configs
for file in foretoken libforetoken_cuda.so; do
  [[ -f $1/$file ]] || {
    echo "$file is not in $1: build it with \`cmake --build --preset cuda-release\`" >&2
    exit 1
  }
done
bin=$(readlink -f "$1")
export FORETOKEN_CUDA_PLUGIN=$bin/libforetoken_cuda.so
errors=$(mktemp)
trap 'rm -f "$errors"' EXIT
seconds() {
  local label=$1 shape=$2 tokens=$3 output status=0
  shift 3
  output=$("$bin/foretoken" bench latency --device cuda --model "$configs/$shape" \
    --load-format dummy --batch-size 1 --input-len 128 --output-len "$tokens" \
    --num-iters-warmup 1 --num-iters 3 --log-level error "$@" 2>"$errors") || status=$?
  if [[ $status != 0 ]]; then
    cat "$errors" >&2
    echo "$shape, $label, $tokens tokens: foretoken failed with exit status $status" >&2
    return 1
  fi
  if ! sed -n 's/^Avg latency: \([0-9.]*\) seconds$/\1/p' <<<"$output" | grep .; then
    echo "$shape, $label, $tokens tokens: no average latency in the output of foretoken" >&2
    return 1
  fi
}
run() {
  local label=$1 shape=$2 long short
  shift 2
  long=$(seconds "$label" "$shape" 272 "$@")
  short=$(seconds "$label" "$shape" 16 "$@")
  awk -v l="$long" -v s="$short" -v what="$shape, $label" \
    'BEGIN { printf "%-36s %8.4f ms per token (272 tokens: %.4f s, 16: %.4f s)\n", what, (l - s) / 0.256, l, s }'
}
drafts='{"method":"ngram","num_speculative_tokens":16,"prompt_lookup_max":4,"prompt_lookup_min":3}'
for shape in ${SHAPES:-llama-68m llama-3-8b}; do
  run "none" "$shape"
  run "one step in flight" "$shape" --steps-in-flight 1
  run "eager" "$shape" --enforce-eager
  run "16 drafts" "$shape" -sc "$drafts"
done
