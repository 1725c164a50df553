#!/usr/bin/env bash
# usage: mk-cuda-root.sh SITE_PACKAGES DEST
# Shapes the CUDA wheels under SITE_PACKAGES as a toolkit folder that nvcc and CMake understand.
set -euo pipefail

wheels=$1/nvidia/cu13
root=$2
[[ -x $wheels/bin/nvcc ]] || { echo "mk-cuda-root: no nvcc under $wheels" >&2; exit 1; }

rm -rf "$root"
mkdir -p "$root"/{bin,include,lib64}

# nvcc finds its root from its own real path, so the driver and its profile are copies, not links.
cp "$wheels"/bin/nvcc "$wheels"/bin/nvcc.profile "$root"/bin/
for file in "$wheels"/bin/*; do
  [[ -e $root/bin/${file##*/} ]] || ln -s "$file" "$root/bin/${file##*/}"
done
ln -s "$wheels"/nvvm "$root"/nvvm
for file in "$wheels"/include/*; do ln -s "$file" "$root/include/${file##*/}"; done

# The wheels hold only lib*.so.N; the linker wants lib*.so.
for file in "$wheels"/lib/*; do
  name=${file##*/}
  ln -s "$file" "$root/lib64/$name"
  if [[ $name == *.so.* ]]; then ln -sfn "$file" "$root/lib64/${name%%.so.*}.so"; fi
done
ln -s lib64 "$root"/lib
printf '{ "cuda" : { "name" : "CUDA SDK", "version" : "13.0.2" } }\n' >"$root"/version.json
