# See tests/labels.cmake.
set(sanitizers asan tsan)
set(slow "DraftRecovery.*_4$")
