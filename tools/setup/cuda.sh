# Finds or makes a CUDA 13 toolkit, and fetches FlashInfer's headers; sourced after common.sh. Sets
# cuda_root.

is_cuda13() {
  [[ -x $1 ]] && "$1" --version 2>/dev/null | grep -q 'release 13\.'
}

install_cuda_wheels() {
  local venv=build/cuda-toolkit/venv
  python3 -m venv "$venv"
  "$venv"/bin/pip install --disable-pip-version-check --no-cache-dir \
    -r tools/setup/cuda-requirements.txt
  local packages
  packages=$("$venv"/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  tools/setup/mk-cuda-root.sh "$packages" "$PWD"/build/cuda-toolkit/root
  cp tools/setup/cuda-requirements.txt build/cuda-toolkit/installed.txt
}

# The headers keep their places in the wheel's folder flashinfer/data; nothing else is kept.
install_flashinfer() {
  local venv=build/cuda-toolkit/venv wheels=build/cuda-toolkit/wheels
  local root=build/cuda-toolkit/flashinfer list=tools/setup/flashinfer-requirements.txt
  rm -rf "$root" "$wheels"
  [[ -x $venv/bin/pip ]] || python3 -m venv "$venv" || return
  "$venv"/bin/pip download --disable-pip-version-check --no-cache-dir --no-deps \
    --only-binary=:all: --dest "$wheels" -r "$list" || return
  "$venv"/bin/python tools/setup/unpack_headers.py "$wheels"/flashinfer_python-*.whl flashinfer/data \
    "$root" include cutlass/include cccl/libcudacxx/include || return
  rm -rf "$wheels"
  cp "$list" "$root"/installed.txt
}

need_venv() {
  python3 -c 'import ensurepip' 2>/dev/null || install_missing venv python3-venv
}

# setup_cuda: CUDA_HOME, then nvcc on PATH, then wheels under build/cuda-toolkit.
setup_cuda() {
  local nvcc
  nvcc=$(command -v nvcc || true)
  if [[ -n ${CUDA_HOME:-} ]]; then
    is_cuda13 "$CUDA_HOME/bin/nvcc" || die "CUDA_HOME=$CUDA_HOME holds no nvcc 13; unset it or point it at CUDA 13"
    cuda_root=$CUDA_HOME
  elif [[ -n $nvcc ]] && is_cuda13 "$nvcc"; then
    cuda_root=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
  else
    cuda_root=$PWD/build/cuda-toolkit/root
    if ! cmp -s tools/setup/cuda-requirements.txt build/cuda-toolkit/installed.txt ||
      ! is_cuda13 "$cuda_root/bin/nvcc"; then
      need_venv
      run_step cuda-toolkit "CUDA 13.0 compiler from wheels" install_cuda_wheels
    fi
  fi
  echo "CUDA toolkit: $cuda_root"
  if ! cmp -s tools/setup/flashinfer-requirements.txt build/cuda-toolkit/flashinfer/installed.txt; then
    need_venv
    (run_step flashinfer "FlashInfer's headers from a wheel" install_flashinfer) ||
      echo "going on without FlashInfer: --batch-invariant off will change nothing"
  fi
}

# build_cuda <target>
build_cuda() {
  local cmake_arguments=(-DCMAKE_CUDA_COMPILER="$cuda_root/bin/nvcc" -DCUDAToolkit_ROOT="$cuda_root"
    ${FORETOKEN_CUDA_ARCHS:+-DFORETOKEN_CUDA_ARCHS="$FORETOKEN_CUDA_ARCHS"})
  build_preset cuda-release "$1"
}
