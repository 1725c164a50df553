#!/usr/bin/env bash
# Packs the programs of a build for a GPU machine without a network or a Rust tool chain.
#   tools/cuda/pack_for_gpu.sh [OPTION...] [PROGRAM...]
# PROGRAM: a program of the build, as foretoken or test_model; without any foretoken and those that
# tools/cuda/run_checks.sh runs. The kit holds them stripped, the shared libraries that they need,
# and what nvcc needs to build the CUDA plug-in beside them: three static libraries and the headers
# of fmt, spdlog and nlohmann. That machine has a checkout of the same commit (its sources, models
# and tests are not packed), nvcc 13, CMake and a libc and libstdc++ that are not older than here;
# there tools/cuda/unpack_on_gpu.sh builds the plug-in and runs commands.
#   --build DIR       the build to pack (build/cpu-release)
#   --output DIR      where the kit goes (build/gpu-kit)
#   --flashinfer DIR  FlashInfer's headers, as in flashinfer/data of its wheel, join it
#   --limit MIB       fails where the kit is larger, and says what is large in it
set -euo pipefail
root=$(dirname "$(dirname "$(dirname "$(readlink -f "$0")")")")
build=$root/build/cpu-release output=$root/build/gpu-kit flashinfer='' limit=0
programs=()
die() { echo "pack_for_gpu: $*" >&2; exit 1; }
while [[ $# -gt 0 ]]; do
  case $1 in
    --build | --output | --flashinfer | --limit)
      [[ $# -ge 2 ]] || die "$1 wants a value"
      printf -v "${1#--}" %s "$2"
      shift
      ;;
    -h | --help) sed -n '2,15s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) die "$1 is no option; --help lists them" ;;
    *) programs+=("$1") ;;
  esac
  shift
done
if [[ ${#programs[@]} -eq 0 ]]; then
  programs=(foretoken)
  while read -r name; do [[ -x $build/$name ]] && programs+=("$name"); done < <(
    printf 'device_check\n'
    sed -n '/^tests=(/,/)/p' "$root/tools/cuda/run_checks.sh" | grep -o 'test_[a-z]*')
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
kit=$work/kit
mkdir -p "$kit/lib" "$kit/include" "$output"

# The plug-in, which that machine's compiler makes, wants those of there.
is_of_every_machine() {
  [[ $1 =~ ^(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|stdc\+\+|gcc_s|gomp))\.so ]]
}

pack_programs() {
  local program name path
  for program in "${programs[@]}"; do
    [[ -x $build/$program ]] || die "$build has no $program; build it: cmake --build $build --target $program"
    strip -o "$work/$program" "$build/$program"
    while read -r name path; do
      is_of_every_machine "$name" && continue
      [[ $path == /* ]] || die "$program needs $name, which is not on this machine"
      cp -Lu "$path" "$kit/lib/$name"
    done < <(ldd "$build/$program" | awk '$2 == "=>" {print $1, $3}')
  done
}

# The folders of headers that the plug-in's sources reach, from where this compiler finds them.
pack_headers() {
  local include header
  for header in fmt/format.h spdlog/spdlog.h nlohmann/json.hpp; do
    include=$(echo "#include <$header>" | c++ -std=c++20 -x c++ -M - |
      tr ' \\' '\n\n' | awk -v header="/$header" \
      'substr($0, length($0) - length(header) + 1) == header && !found++')
    [[ -n $include ]] || die "this compiler finds no $header"
    cp -RL "$(dirname "$include")" "$kit/include/"
  done
}

pack_host_libraries() {
  local name
  for name in base group device; do
    [[ -f $build/libft_$name.a ]] ||
      die "$build has no libft_$name.a; build it: cmake --build $build --target ft_$name"
    cp "$build/libft_$name.a" "$kit/"
  done
  # How they were compiled against fmt and spdlog: what the plug-in is compiled with, too.
  grep -o '"command": .*/ft_base\.dir/.*' "$build/compile_commands.json" |
    grep -oE -- '-D(FMT|SPDLOG)_[A-Z_]+' | sed 's/^-D//' | sort -u >"$kit/definitions.txt"
  sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$build/CMakeCache.txt" >"$kit/source_folder.txt"
}

pack_programs
pack_headers
pack_host_libraries
[[ -z $flashinfer ]] || { mkdir "$kit/flashinfer" && cp -RL "$flashinfer/." "$kit/flashinfer/"; }
filter=()
[[ $(uname -m) == x86_64 ]] && filter=(--x86)
# Programs of one tree share much of their code, which a wide window finds again.
tar -C "$work" --owner=0 --group=0 -c kit "${programs[@]}" |
  xz -T1 ${filter[@]+"${filter[@]}"} --lzma2=preset=6,dict=128MiB >"$output/kit.tar.xz.part"
mv "$output/kit.tar.xz.part" "$output/kit.tar.xz"
bytes=$(stat -c %s "$output/kit.tar.xz")
echo "$output/kit.tar.xz: ${#programs[@]} programs, $(awk "BEGIN {printf \"%.1f\", $bytes / 1048576}") MiB"
if ((limit > 0 && bytes > limit * 1048576)); then
  du -ah --apparent-size "$work" | sort -rh | sed "s|$work/||" | awk 'NR <= 12' >&2
  die "the kit is larger than $limit MiB; name fewer programs"
fi
