# Finds or makes a CUDA 13 toolkit; sourced after common.sh. Sets cuda_root.

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
      python3 -c 'import ensurepip' 2>/dev/null || install_missing venv python3-venv
      run_step cuda-toolkit "CUDA 13.0 compiler from wheels" install_cuda_wheels
    fi
  fi
  echo "CUDA toolkit: $cuda_root"
}

# build_cuda <target>
build_cuda() {
  local cmake_arguments=(-DCMAKE_CUDA_COMPILER="$cuda_root/bin/nvcc" -DCUDAToolkit_ROOT="$cuda_root"
    ${FORETOKEN_CUDA_ARCHS:+-DFORETOKEN_CUDA_ARCHS="$FORETOKEN_CUDA_ARCHS"})
  build_preset cuda-release "$1"
}
