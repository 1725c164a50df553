#!/bin/bash
# Trains the bundled pair and packs it: run_all.sh TOKENS WORK PACKED [target|draft|all] [quick]
#   TOKENS  what prepare.py wrote
#   WORK    a folder for foretoken-7m and foretoken-7m-draft
#   PACKED  a folder for target.tar, draft.tar and log.txt, written as training goes on
# Seconds of each stage: TEACHER_SECONDS (each of TEACHERS), TARGET_SECONDS, SAMPLE_SECONDS, DRAFT_SECONDS.
# "quick" runs every stage with a few tiny steps, to try the scripts on a CPU.
set -uo pipefail
tokens=$1 work=$2 packed=$3 stage=${4:-all} quick=${5:-}
here=$(cd "$(dirname "$0")" && pwd)
export PYTHONUNBUFFERED=1
python=${PYTHON:-python3}
mkdir -p "$work" "$packed"

target_options=(--teachers "${TEACHERS:-2}" --teacher-seconds "${TEACHER_SECONDS:-85}" --max-seconds "${TARGET_SECONDS:-200}"
                --steps 14000 --teacher-steps 8000)
draft_options=(--sample-seconds "${SAMPLE_SECONDS:-25}" --max-seconds "${DRAFT_SECONDS:-80}" --steps 14000)
if [ "$quick" = quick ]; then
    target_options=(--teachers 1 --teacher-steps 2 --steps 2 --tokens 512 --context 128 --questions 4)
    draft_options=(--samples 8 --sample-rows 4 --sample-tokens 48 --steps 2 --tokens 512 --context 128)
fi

status=0
if [ "$stage" != draft ]; then
    "$python" "$here/train_target.py" --data "$tokens" --out "$work/foretoken-7m" --pack "$packed/target.tar" \
        "${target_options[@]}" 2>&1 | tee -a "$packed/log.txt" || status=$?
fi
if [ "$stage" != target ]; then
    "$python" "$here/train_draft.py" --data "$tokens" --target "$work/foretoken-7m" --out "$work/foretoken-7m-draft" \
        --pack "$packed/draft.tar" "${draft_options[@]}" 2>&1 | tee -a "$packed/log.txt" || status=$?
fi
exit $status
