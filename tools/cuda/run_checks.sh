#!/usr/bin/env bash
# Runs the unit and conformance tests on the GPU and checks that none is skipped and no step waits.
#   tools/cuda/run_checks.sh BIN_DIR OUT_DIR
# BIN_DIR holds the test programs, foretoken and libforetoken_cuda.so; logs go to OUT_DIR.
set -uo pipefail
bin=$(readlink -f "$1")
out=$2
mkdir -p "$out"
export FORETOKEN_TEST_DEVICE=cuda FORETOKEN_CUDA_PLUGIN=$bin/libforetoken_cuda.so
failed=0
for test in test_device test_kernels test_attention test_model test_engine test_conformance; do
  "$bin/$test" >"$out/$test.log" 2>&1 || failed=1
  printf '%-18s %s; device lines %s; skipped %s; failed %s\n' "$test" \
    "$(grep -E '^\[  PASSED' "$out/$test.log" | tr -d '[]')" \
    "$(grep -c 'device=' "$out/$test.log")" \
    "$(grep -c '^\[  SKIPPED \]' "$out/$test.log")" "$(grep -c '^\[  FAILED  \].*ms)' "$out/$test.log")"
  grep -E 'Failure|differ' -A4 "$out/$test.log" | grep -v ' 0 of ' | head -n 20
done

cuda=${CUDA_HOME:-$(dirname "$(dirname "$(readlink -f "$(command -v nvcc)")")")}
cupti=$(find "$cuda"/ /usr/local/ /opt/ -name cupti.h 2>/dev/null | head -n 1)
cupti_lib=$(find "$cuda"/ /usr/local/ /opt/ -name 'libcupti.so*' 2>/dev/null | head -n 1)
if g++ -shared -fPIC -O1 -I"$cuda/include" -I"$(dirname "$cupti")" tools/cuda/sync_counter.cpp \
  -o "$out/libsync_counter.so" "$cupti_lib"; then
  for tokens in 64 512; do
    LD_LIBRARY_PATH=$(dirname "$cupti_lib"):${LD_LIBRARY_PATH:-} \
      CUDA_INJECTION64_PATH=$out/libsync_counter.so "$bin/foretoken" bench latency --device cuda \
      --model models/foretoken-7m --batch-size 4 --input-len 16 --output-len "$tokens" \
      --num-iters-warmup 1 --num-iters 2 --log-level error \
      -sc '{"method":"ngram","num_speculative_tokens":4,"prompt_lookup_max":4,"prompt_lookup_min":1}' \
      2>&1 | grep -E 'cupti' | sed "s/^/$tokens output tokens: /"
  done
  rm -f "$out/libsync_counter.so"
else
  failed=1
fi
exit $failed
