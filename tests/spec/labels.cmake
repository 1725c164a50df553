# See tests/entries.cmake.
set(sanitizers asan)
# A simulation of many batches, 25 s there; it touches what the others touch.
set(slow_asan "LengthController\\.AdaptiveIsNeverBelow")
