#!/usr/bin/env bash
# check_planted_race.sh BUILD_DIR: in a ThreadSanitizer build, runs the engine with a plan that
# overwrites the ring entry of a step in flight, and fails unless a data race is reported: a suite
# that cannot see this race would prove nothing when it is silent.
set -euo pipefail
if [[ $# -ne 1 || ! -x $1/test_conformance ]]; then
  echo "usage: $0 BUILD_DIR, a folder built with FORETOKEN_SANITIZE=thread that holds test_conformance" >&2
  exit 2
fi
build=$(readlink -f "$1")
cd "$(dirname "$(readlink -f "$0")")/.."
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# ThreadSanitizer's memory layout cannot stand address randomisation on newer kernels.
runner=()
if setarch -R true 2>/dev/null; then runner=(setarch -R); fi
# With the suppressions of the suite, whose eyesight is in question. One run should do; what a machine
# does to its history is not ours, so there are more until the first report. The fault breaks the engine,
# and the exit status says nothing.
TSAN_OPTIONS="halt_on_error=1:history_size=7:suppressions=$PWD/tools/tsan.supp" timeout 300 "${runner[@]}" \
  "$build/test_conformance" --gtest_also_run_disabled_tests --gtest_repeat=20 \
  --gtest_filter='*DISABLED_PlantedRaceForThreadSanitizer' >"$log" 2>&1 || true

if ! grep -q 'RUN .*DISABLED_PlantedRaceForThreadSanitizer' "$log"; then
  cat "$log" >&2
  echo "the planted race did not run" >&2
  exit 1
fi
if ! grep -q 'WARNING: ThreadSanitizer: data race' "$log" ||
  ! grep -qE 'begin(\(.*\))? [^ ]*/model_runner\.cpp' "$log"; then
  tail -n 60 "$log" >&2
  echo "the planted race was not reported: is $build a ThreadSanitizer build?" >&2
  exit 1
fi
grep -m1 'SUMMARY: ThreadSanitizer' "$log"
