# The virtual environment of the Python package's build and tests; sourced after common.sh.

python_venv=build/python-venv

make_python_venv() {
  python3 -m venv "$python_venv"
  "$python_venv"/bin/pip install --disable-pip-version-check --no-cache-dir \
    -r tools/setup/python-requirements.txt
  cp tools/setup/python-requirements.txt "$python_venv"/installed.txt
}

# setup_python: adds to cmake_arguments what builds the package, or says why it is left out.
setup_python() {
  if [[ ${FORETOKEN_PYTHON:-1} == 0 ]]; then
    echo "the Python package is left out: FORETOKEN_PYTHON=0"
    cmake_arguments+=(-DFORETOKEN_PYTHON=OFF)
    return
  fi
  need_packages tools/setup/packages-python.txt
  if ! cmp -s tools/setup/python-requirements.txt "$python_venv"/installed.txt; then
    mkdir -p "$log_dir"
    if ! make_python_venv >"$log_dir/python-venv.log" 2>&1 </dev/null; then
      echo "the Python package is left out: pip failed (no network?); see $log_dir/python-venv.log"
      cmake_arguments+=(-DFORETOKEN_PYTHON=OFF)
      return
    fi
  fi
  cmake_arguments+=(-DFORETOKEN_PYTHON=ON -DPython_EXECUTABLE="$PWD/$python_venv/bin/python")
}
