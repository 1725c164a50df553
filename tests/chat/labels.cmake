# See tests/entries.cmake.
# Samples of calls, for each format of them.
set(in_turns "CallProperty")
