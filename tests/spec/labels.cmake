# See tests/labels.cmake.
set(sanitizers asan)
