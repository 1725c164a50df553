# See tests/entries.cmake.
set(sanitizers tsan)
