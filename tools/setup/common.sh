# Shared by quickstart, test and .ci/run; sourced with the repository root as working folder.
# Every step is idempotent and prints one line; its output goes to build/logs/<name>.log.

log_dir=build/logs
jobs=${FORETOKEN_JOBS:-$(nproc)}
# Half as many tests again as cores: some wait for a client, a rank or a deadline.
test_jobs=$((jobs + jobs / 2))
read -r -a cmake_arguments <<<"${FORETOKEN_CMAKE_ARGUMENTS:-}"
build_arguments=()

die() {
  echo "error: $*" >&2
  exit 1
}

# run_step <log name> <what it does> <command...>
run_step() {
  local log=$log_dir/$1.log label=$2 start=$SECONDS
  shift 2
  mkdir -p "$log_dir"
  printf '%-48s' "$label"
  if "$@" >"$log" 2>&1 </dev/null; then
    printf ' %4d s\n' $((SECONDS - start))
  else
    printf ' failed\n\n' && tail -n 40 "$log" >&2
    die "'$label' failed after $((SECONDS - start)) s; the whole output is in $log"
  fi
}

as_root() {
  if [[ $(id -u) -eq 0 ]]; then "$@"; else sudo "$@"; fi
}

apt_install() {
  as_root apt-get update
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
}

# need_packages <list file>: installs what is missing of a list of packages.
need_packages() {
  local missing=() package command
  while read -r package command; do
    [[ -z $package || $package == \#* ]] && continue
    [[ -n $command ]] && command -v "$command" >/dev/null && continue
    [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] && continue
    missing+=("$package")
  done <"$1"
  install_missing "$(basename "$1" .txt)" "${missing[@]}"
}

# install_missing <log name> <package...>
install_missing() {
  local log=apt-$1
  shift
  [[ $# -gt 0 ]] || return 0
  command -v apt-get >/dev/null || die "no apt-get here; install by hand the like of: $*"
  [[ $(id -u) -eq 0 ]] || command -v sudo >/dev/null || die "run as root: apt-get install $*"
  run_step "$log" "apt: $# package(s)" apt_install "$@"
}

# need_cargo: a Rust tool chain new enough for the text crate, on PATH afterwards.
need_cargo() {
  local minimum=1.87
  [[ -x $HOME/.cargo/bin/cargo ]] && export PATH="$HOME/.cargo/bin:$PATH"
  local version
  version=$(cargo --version 2>/dev/null | awk '{print $2}' || true)
  if [[ -n $version && $(printf '%s\n' "$minimum" "$version" | sort -V | head -n 1) == "$minimum" ]]; then
    return
  fi
  install_missing rust rustc-web cargo-web
  hash -r
}

setup_cpu() {
  need_packages tools/setup/packages.txt
  need_cargo
}

# build_preset <preset> <target...>; CMake arguments stand in the array cmake_arguments, which begins
# with those of FORETOKEN_CMAKE_ARGUMENTS, those of ninja in build_arguments.
build_preset() {
  local preset=$1
  shift
  run_step "configure-$preset" "configure $preset" cmake --preset "$preset" "${cmake_arguments[@]}"
  run_step "build-$preset" "build $preset ($jobs jobs, some minutes)" \
    cmake --build --preset "$preset" --target "$@" --parallel "$jobs" -- "${build_arguments[@]}"
}

# choose_turn: of the turns of tests/entries.cmake the day's, or that of FORETOKEN_TEST_TURN, which can be
# "all". Sets `turn`, and `turn_arguments` to what keeps ctest from the other turns and thirds.
choose_turn() {
  local turns others
  turns=$(sed -nE 's/^set\(turns ([0-9]+)\)$/\1/p' tests/entries.cmake)
  turn=${FORETOKEN_TEST_TURN:-$(($(date +%s) / 86400 % turns))}
  turn_arguments=()
  if [[ $turn == all ]]; then return; fi
  [[ $turn =~ ^(0|[1-9][0-9]?)$ && $turn -lt $turns ]] ||
    die "FORETOKEN_TEST_TURN is '$turn'; say a turn, 0 to $((turns - 1)), or all"
  others=$(seq 0 $((turns - 1)) | grep -vx "$turn" | paste -sd '|')
  turn_arguments=(-LE "^(turn-($others)|third-[^$((turn % 3))])\$")
}
