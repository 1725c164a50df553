#!/usr/bin/env bash
# Unpacks a kit of tools/cuda/pack_for_gpu.sh, builds the CUDA plug-in beside its programs, and runs a
# command with both.
#   tools/cuda/unpack_on_gpu.sh [OPTION...] [COMMAND...]
# COMMAND runs in the root of this checkout with the programs on PATH, their libraries found and
# FORETOKEN_TEST_DEVICE=cuda; its exit status is this script's. Without one the kit is unpacked and
# the plug-in built. What is there already is kept: a kit is unpacked once, and the plug-in built
# again where a source of it changed. nvcc 13 is taken from CUDA_HOME, PATH or /usr/local/cuda.
#   --kit DIR    the folder of kit.tar.xz (build/gpu-kit)
#   --build DIR  where programs and plug-in go (build/gpu)
#   --target T   a target of the plug-in's build, as one object, in place of all of it
# From the environment: FORETOKEN_CUDA_ARCHS, as CMake's (90a-real); FORETOKEN_CMAKE_ARGUMENTS.
set -euo pipefail
root=$(dirname "$(dirname "$(dirname "$(readlink -f "$0")")")")
kit_folder=$root/build/gpu-kit build=$root/build/gpu target=foretoken_cuda
die() { echo "unpack_on_gpu: $*" >&2; exit 1; }
while [[ $# -gt 0 && $1 == -* ]]; do
  case $1 in
    --kit) kit_folder=$2 ;;
    --build) build=$2 ;;
    --target) target=$2 ;;
    --) shift; break ;;
    -h | --help) sed -n '2,14s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) die "$1 is no option; --help lists them" ;;
  esac
  [[ $# -ge 2 ]] || die "$1 wants a value"
  shift 2
done
mkdir -p "$build"
build=$(readlink -f "$build")
kit=$build/kit

unpack() {
  local archive=$kit_folder/kit.tar.xz
  [[ -f $archive ]] || die "$archive is missing; make it with tools/cuda/pack_for_gpu.sh where the programs are built"
  local sum
  sum=$(sha256sum <"$archive")
  [[ $(cat "$build/unpacked" 2>/dev/null) != "$sum" ]] || return 0
  if command -v xz >/dev/null; then
    tar -C "$build" -xJf "$archive"
  else
    python3 -m tarfile -e "$archive" "$build"
  fi
  echo "$sum" >"$build/unpacked"
}

# Tests know the checkout that they were compiled from by its path, and the build in it.
link_source_folder() {
  local source
  source=$(cat "$kit/source_folder.txt")
  [[ $source -ef $root ]] && return 0
  [[ -d $source ]] && { echo "unpack_on_gpu: tests read their data from $source, not from here" >&2; return 0; }
  mkdir -p "$(dirname "$source")" 2>/dev/null && ln -sfn "$root" "$source" 2>/dev/null ||
    echo "unpack_on_gpu: tests look for their data in $source; make it a link to $root" >&2
}

find_nvcc() {
  local nvcc
  for nvcc in ${CUDA_HOME:+"$CUDA_HOME/bin/nvcc"} "$(command -v nvcc || true)" /usr/local/cuda/bin/nvcc; do
    [[ -x $nvcc && $("$nvcc" --version) == *"release 13."* ]] && { echo "$nvcc"; return 0; }
  done
  die "no nvcc 13 in CUDA_HOME, on PATH or in /usr/local/cuda"
}

build_plugin() {
  local sources stamp nvcc arguments start=$SECONDS
  # By what the sources hold: a copied tree has new times.
  sources=$(cd "$root" && { cat "$build/unpacked"; echo "$target"
    find src include cmake -type f ! -name '*.cpp' | LC_ALL=C sort | xargs sha256sum; } | sha256sum)
  stamp=$build/plugin_sources
  [[ $(cat "$stamp" 2>/dev/null) != "$sources" ]] || return 0
  nvcc=$(find_nvcc)
  read -r -a arguments <<<"${FORETOKEN_CMAKE_ARGUMENTS:-}"
  [[ -z ${FORETOKEN_CUDA_ARCHS:-} ]] || arguments+=("-DFORETOKEN_CUDA_ARCHS=$FORETOKEN_CUDA_ARCHS")
  command -v ninja >/dev/null && arguments+=(-G Ninja)
  if ! cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CUDA_COMPILER="$nvcc" \
    -DFORETOKEN_GPU_KIT="$kit" ${arguments[@]+"${arguments[@]}"} >"$build/configure.log" 2>&1 ||
    ! cmake --build "$build" --target "$target" --parallel "$(nproc)" >"$build/build.log" 2>&1; then
    grep -hE 'error|Error|FAILED|fatal' "$build/configure.log" "$build/build.log" | head -n 20 >&2
    die "the plug-in does not build; $build/configure.log and build.log say more"
  fi
  echo "$sources" >"$stamp"
  echo "$target: $((SECONDS - start)) s"
}

unpack
link_source_folder
build_plugin
[[ $# -gt 0 ]] || exit 0
cd "$root"
export PATH=$build:$PATH LD_LIBRARY_PATH=$kit/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export FORETOKEN_TEST_DEVICE=${FORETOKEN_TEST_DEVICE:-cuda} FORETOKEN_MODELS_DIR=$root/models
exec "$@"
