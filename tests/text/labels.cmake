# See tests/entries.cmake.
set(sanitizers asan)
set(first "Families" "SchemaSuite" "ChatTemplate" "Grammar")
