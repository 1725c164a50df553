# See tests/entries.cmake.
set(sanitizers tsan)
set(slow "ResponseStore\\.(Bytes|AReplaced)")
