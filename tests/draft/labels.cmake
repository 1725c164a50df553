# See tests/entries.cmake.
set(sanitizers asan)
# Statistics of many drafts.
set(slow_asan "DialledRates\\.")
