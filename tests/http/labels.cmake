# See tests/labels.cmake.
set(sanitizers tsan)
