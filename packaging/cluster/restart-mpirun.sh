#!/bin/sh
# Runs a command under mpirun and starts it again whenever its group ends with an error:
#   restart-mpirun.sh RANKS COMMAND...
# FORETOKEN_MPIRUN_ARGS: further arguments of mpirun (--host a:2,b:2). Ends with the group's exit code
# 0, or after five failures within a minute.
set -u
ranks=${1:?usage: restart-mpirun.sh RANKS COMMAND...}
shift
failures=0
first=0
while :; do
  # shellcheck disable=SC2086
  mpirun ${FORETOKEN_MPIRUN_ARGS:-} -np "$ranks" "$@" && exit 0
  now=$(date +%s)
  [ $((now - first)) -gt 60 ] && failures=0 && first=$now
  failures=$((failures + 1))
  [ "$failures" -ge 5 ] && exit 1
  sleep "${FORETOKEN_RESTART_SECONDS:-1}"
done
