#!/usr/bin/env bash
# Runs the checks that need a GPU and prints a short summary of each program.
#   tools/cuda/run_checks.sh BIN_DIR OUT_DIR [PART...] [-- OPTION...]
# PART: ops          device_check: the CUDA ops against plain references and the CPU's
#       tests        the unit and conformance tests with FORETOKEN_TEST_DEVICE=cuda
#       waits        counts the calls that make the host wait; needs CUPTI and g++
#       ranges       counts the NVTX ranges that a profiler gets, eager and with graphs; needs g++
#       speculation  bench/speculation.sh gpu; OPTIONs are its own
# Without a PART all but speculation. BIN_DIR holds the test programs, device_check, foretoken and
# libforetoken_cuda.so; logs go to OUT_DIR. From the environment: JOBS, processes at once (8); LIMIT,
# seconds for each of them (300); FILTER, a gtest filter. Exits with 1 when anything failed, is
# missing or ran out of time, or a program could not open the device; before running anything, when
# there is no GPU or BIN_DIR lacks a program; with 2 for wrong arguments. What needs more GPUs, or a
# CPU, is skipped and counted.
set -uo pipefail
[[ $# -ge 2 ]] || { sed -n '2,15s/^# \{0,1\}//p' "$0"; exit 2; }
root=$(dirname "$(dirname "$(dirname "$(readlink -f "$0")")")")
bin_dir=$1 out_dir=$2
shift 2
parts=()
while [[ $# -gt 0 && $1 != -- ]]; do parts+=("$1"); shift; done
[[ $# -gt 0 ]] && shift
options=("$@")
[[ ${#parts[@]} -gt 0 ]] || parts=(ops tests waits ranges)
# NAME:SHARDS
tests=(test_conformance:8 test_engine:5 test_model:3 test_kernels:2 test_draft:1 test_attention:1
  test_device:1)

# The files of BIN_DIR that PART needs.
needs_of() {
  echo libforetoken_cuda.so
  case $1 in
    ops) echo device_check ;;
    tests) printf '%s\n' "${tests[@]%:*}" ;;
    waits | ranges | speculation) echo foretoken ;;
    *)
      echo "$1 is not a PART; they are ops, tests, waits, ranges and speculation" >&2
      return 1
      ;;
  esac
}

needs=()
for part in "${parts[@]}"; do
  names=$(needs_of "$part") || exit 2
  mapfile -t -O "${#needs[@]}" needs <<<"$names"
done
[[ -d $bin_dir ]] || { echo "$bin_dir is not a folder" >&2; exit 1; }
bin=$(readlink -f "$bin_dir")
ready=1
while read -r name; do
  [[ -f $bin/$name && (-x $bin/$name || $name == *.so) ]] && continue
  echo "$name is not in $bin_dir: build it with \`cmake --build --preset cuda-release\`" >&2
  ready=0
done < <(printf '%s\n' "${needs[@]}" | sort -u)
if [[ ! -e /dev/nvidia0 ]] && ! nvidia-smi >/dev/null 2>&1; then
  echo "no GPU here: there is no /dev/nvidia0, and nvidia-smi is missing or fails" >&2
  ready=0
fi
[[ $ready == 1 ]] || exit 1
mkdir -p "$out_dir" || exit 1
out=$(readlink -f "$out_dir")
export FORETOKEN_TEST_DEVICE=cuda FORETOKEN_CUDA_PLUGIN=$bin/libforetoken_cuda.so
limit=${LIMIT:-300}
failed=0

# start NAME COMMAND...: in the background, the log and the exit status in OUT_DIR.
start() {
  local name=$1
  shift
  while (($(jobs -rp | wc -l) >= ${JOBS:-8})); do wait -n; done
  (
    timeout -k 5 "$limit" "$@" >"$out/$name.log" 2>&1
    echo $? >"$out/$name.rc"
  ) &
}

# NAME and the verdict of its log: device_check's lines ok and FAIL.
tell_ops() {
  local log=$out/$1.log rc
  rc=$(cat "$out/$1.rc")
  printf '%-24s %s ok, %s failed%s\n' "$1" "$(grep -c '^ok ' "$log")" \
    "$(grep -c '^FAIL' "$log")" "$([[ $rc == 0 ]] || echo ", exit status $rc")"
  grep -hE '^(FAIL|     )' "$log" | head -n 20
  grep -hE '^ok +time ' "$log"
  [[ $rc == 0 ]] || failed=1
}

run_ops() {
  local part
  for part in attention bits gemm head step draft sample rows queue; do
    start "device_check_$part" "$bin/device_check" "$part"
  done
  wait
  # These measure times: nothing beside them.
  for part in logits large; do
    start "device_check_$part" "$bin/device_check" "$part"
    wait
  done
  for part in queue rows sample logits step draft head attention gemm bits large; do
    tell_ops "device_check_$part"
  done
}

# The shards of one test program.
tell_test() {
  local name=$1 shards=$2 logs=() passed=0 rc i
  for ((i = 0; i < shards; ++i)); do
    logs+=("$out/$name.$i.log")
    rc=$(cat "$out/$name.$i.rc")
    [[ $rc == 0 ]] || { failed=1; echo "$name, shard $i of $shards: exit status $rc"; }
  done
  passed=$(cat "${logs[@]}" | sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' |
    awk '{sum += $1} END {print sum + 0}')
  if grep -qE '^(SKIPPING ALL DEVICE TESTS|no device)' "${logs[@]}"; then
    failed=1
    echo "$name could not open the device"
  fi
  local skipped
  skipped=$(cat "${logs[@]}" | grep -c '^\[  SKIPPED \].*ms)')
  printf '%-18s passed %s, failed %s, skipped %s, on the device %s, slowest shard %s s\n' "$name" \
    "$passed" "$(cat "${logs[@]}" | grep -c '^\[  FAILED  \].*ms)')" "$skipped" \
    "$(cat "${logs[@]}" | grep -c 'device=')" \
    "$(cat "${logs[@]}" | sed -n 's/.* ran\. (\([0-9]*\) ms total).*/\1/p' | sort -n | tail -n 1 |
      awk '{printf "%.0f", $1 / 1000}')"
  cat "${logs[@]}" | grep -hE '^\[  FAILED  \].*ms)' | head -n 30
  cat "${logs[@]}" | grep -E 'Failure|differ' -A4 | grep -v ' 0 of ' | head -n 20
  return 0  # of pipefail 1 where nothing matched
}

run_tests() {
  local entry name shards i
  for entry in "${tests[@]}"; do
    name=${entry%:*} shards=${entry#*:}
    for ((i = 0; i < shards; ++i)); do
      start "$name.$i" env GTEST_TOTAL_SHARDS="$shards" GTEST_SHARD_INDEX="$i" "$bin/$name" \
        --gtest_filter="${FILTER:-*}"
    done
  done
  wait
  for entry in "${tests[@]}"; do tell_test "${entry%:*}" "${entry#*:}"; done
}

# Equal numbers of waiting calls for runs of different length show that no step waits.
run_waits() {
  local cuda cupti cupti_lib tokens method
  cuda=${CUDA_HOME:-$(dirname "$(dirname "$(readlink -f "$(command -v nvcc)")")")}
  cupti=$(find "$cuda"/ /usr/local/ /opt/ -name cupti.h 2>/dev/null | head -n 1)
  cupti_lib=$(find "$cuda"/ /usr/local/ /opt/ -name 'libcupti.so*' 2>/dev/null | head -n 1)
  g++ -shared -fPIC -O1 -I"$cuda/include" -I"$(dirname "$cupti")" \
    "$root/tools/cuda/sync_counter.cpp" -o "$out/libsync_counter.so" "$cupti_lib" ||
    { failed=1; return; }
  for method in '{"method":"ngram","num_speculative_tokens":4,"prompt_lookup_max":4,"prompt_lookup_min":1}' \
    '{"method":"draft_model","model":"'"$root"'/models/foretoken-7m-draft","num_speculative_tokens":4}'; do
    for tokens in 64 512; do
      LD_LIBRARY_PATH=$(dirname "$cupti_lib"):${LD_LIBRARY_PATH:-} \
        CUDA_INJECTION64_PATH=$out/libsync_counter.so timeout -k 5 "$limit" "$bin/foretoken" bench \
        latency --device cuda --model "$root/models/foretoken-7m" --batch-size 4 --input-len 16 \
        --output-len "$tokens" --num-iters-warmup 1 --num-iters 2 --log-level error -sc "$method" \
        >"$out/waits.log" 2>&1 || failed=1
      sed -n "s/.*cupti/$(cut -d'"' -f4 <<<"$method"), $tokens output tokens: cupti/p" \
        "$out/waits.log"
    done
  done
  rm -f "$out/libsync_counter.so"
}

# Every step and op has a range, and none is left open.
run_ranges() {
  local cuda mode log=$out/ranges.log
  cuda=${CUDA_HOME:-$(dirname "$(dirname "$(readlink -f "$(command -v nvcc)")")")}
  g++ -std=c++20 -shared -fPIC -O1 -I"$cuda/include" "$root/tools/cuda/range_counter.cpp" \
    -o "$out/librange_counter.so" || { failed=1; return; }
  for mode in --enforce-eager=true --enforce-eager=false; do
    NVTX_INJECTION64_PATH=$out/librange_counter.so timeout -k 5 "$limit" "$bin/foretoken" bench \
      latency --device cuda --model "$root/models/foretoken-7m" --batch-size 4 --input-len 16 \
      --output-len 64 --num-iters-warmup 1 --num-iters 2 --log-level error "$mode" \
      >"$log" 2>&1 || failed=1
    sed -n "s/^nvtx/ranges $mode/p" "$log"
    grep -q '^nvtx: [1-9][0-9]* ranges, 0 open, 0 unpaired' "$log" || failed=1
  done
  rm -f "$out/librange_counter.so"
}

run_speculation() {
  timeout -k 5 "${SPECULATION_LIMIT:-560}" "$root/bench/speculation.sh" "$bin" "$out/speculation" \
    gpu -- ${options[@]+"${options[@]}"} 2>&1 || failed=1
}

for part in "${parts[@]}"; do
  begin=$SECONDS
  "run_$part" || failed=1
  echo "$part: $((SECONDS - begin)) s"
done
exit $failed
