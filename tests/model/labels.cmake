# See tests/entries.cmake.
set(sanitizers asan)
# Families of architectures in every form of weights.
set(in_turns "Golden.*/")
