#!/usr/bin/env bash
# ms per output token at batch 1 for the shapes in bench/configs (random weights), on the GPU:
# (time for 272 tokens - time for 16) / 256 after a prompt of 128, as bench/results compares it.
#   bench/latency.sh BIN_DIR
# "16 drafts" runs n-gram with K = 16 on random prompts, where drafts are rare: the step's bucket
# holds 32 rows, of which one is live; the difference to "none" is what dead rows cost.
set -uo pipefail
bin=$(readlink -f "$1")
export FORETOKEN_CUDA_PLUGIN=$bin/libforetoken_cuda.so
seconds() {
  local shape=$1 tokens=$2
  shift 2
  "$bin/foretoken" bench latency --device cuda --model "bench/configs/$shape" --load-format dummy \
    --batch-size 1 --input-len 128 --output-len "$tokens" --num-iters-warmup 1 --num-iters 3 \
    --log-level error "$@" 2>/dev/null | sed -n 's/^Avg latency: \([0-9.]*\) seconds/\1/p'
}
run() {
  local label=$1 shape=$2 long short
  shift 2
  long=$(seconds "$shape" 272 "$@")
  short=$(seconds "$shape" 16 "$@")
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
