#!/usr/bin/env bash
# ms per output token at batch 1 for the shapes in bench/configs (random weights), on the GPU.
#   bench/latency.sh BIN_DIR
# "16 drafts" runs n-gram with K = 16 on random prompts: the step's bucket holds 32 rows, of which
# one is live most of the time; the difference to "none" is what dead rows cost.
set -uo pipefail
bin=$(readlink -f "$1")
export FORETOKEN_CUDA_PLUGIN=$bin/libforetoken_cuda.so
run() {
  local label=$1 shape=$2
  shift 2
  local line
  line=$("$bin/foretoken" bench latency --device cuda --model "bench/configs/$shape" \
    --load-format dummy --batch-size 1 --input-len 128 --num-iters-warmup 1 --num-iters 3 \
    --log-level error "$@" 2>&1 | tr '\n' ' ')
  printf '%s, %s: %s\n' "$shape" "$label" "$line"
}
for shape in llama-68m llama-3-8b; do
  run "none" "$shape" --output-len 256
  run "one step in flight" "$shape" --output-len 256 --steps-in-flight 1
  run "eager" "$shape" --output-len 256 --enforce-eager
  run "16 drafts" "$shape" --output-len 256 \
    -sc '{"method":"ngram","num_speculative_tokens":16,"prompt_lookup_max":4,"prompt_lookup_min":3}'
done
