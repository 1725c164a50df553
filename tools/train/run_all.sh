#!/bin/bash
# Trains the bundled models and packs them: run_all.sh TOKENS WORK PACKED [target|draft|heads|all] [quick]
#   TOKENS  what prepare.py wrote
#   WORK    a folder for foretoken-7m, foretoken-7m-draft, foretoken-7m-eagle3, foretoken-7m-eagle and foretoken-7m-mtp
#   PACKED  a folder for target.tar, draft.tar, heads.tar and log.txt, written as training goes on
# Seconds of each stage: TEACHER_SECONDS (each of TEACHERS), TARGET_SECONDS, SAMPLE_SECONDS, DRAFT_SECONDS,
# HEADS_SECONDS.
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
head_options=(--sample-seconds "${SAMPLE_SECONDS:-40}" --max-seconds "${HEADS_SECONDS:-345}" --steps 20000 --tokens 32768
              --draft-vocab-size 2048 --intermediate-size 256)
if [ "$quick" = quick ]; then
    target_options=(--teachers 1 --teacher-steps 2 --steps 2 --tokens 512 --context 128 --questions 4)
    draft_options=(--samples 8 --sample-rows 4 --sample-tokens 48 --steps 2 --tokens 512 --context 128)
    head_options=("${draft_options[@]}" --eval-prompts 1 --draft-vocab-size 2048 --intermediate-size 256)
fi

status=0
if [ "$stage" = target ] || [ "$stage" = all ]; then
    "$python" "$here/train_target.py" --data "$tokens" --out "$work/foretoken-7m" --pack "$packed/target.tar" \
        "${target_options[@]}" 2>&1 | tee -a "$packed/log.txt" || status=$?
fi
if [ "$stage" = draft ] || [ "$stage" = all ]; then
    "$python" "$here/train_draft.py" --data "$tokens" --target "$work/foretoken-7m" --out "$work/foretoken-7m-draft" \
        --pack "$packed/draft.tar" "${draft_options[@]}" 2>&1 | tee -a "$packed/log.txt" || status=$?
fi
if [ "$stage" = heads ] || [ "$stage" = all ]; then
    "$python" "$here/train_heads.py" --data "$tokens" --target "$work/foretoken-7m" --compare "$work/foretoken-7m-draft" \
        --out "$work" "${head_options[@]}" 2>&1 | tee -a "$packed/log.txt" || status=$?
    tar -cf "$packed/heads.tar" -C "$work" foretoken-7m-eagle3 foretoken-7m-eagle foretoken-7m-mtp || status=$?
fi
exit $status
