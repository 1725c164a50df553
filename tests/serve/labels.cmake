# See tests/labels.cmake.
set(sanitizers tsan)
set(slow "ResponseStore\\.(Bytes|AReplaced)")
