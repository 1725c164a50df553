# See tests/entries.cmake.
set(sanitizers asan)
