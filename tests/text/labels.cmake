# See tests/entries.cmake.
set(sanitizers asan)
set(first "Families" "SchemaSuite" "ChatTemplate" "Grammar")
# Tokenizers of many families, each with every text.
set(in_turns "^text/Families/")
# Long texts that the text crate works on, which is not compiled for a sanitizer.
set(slow_asan "SchemaSuite\\." "JsonSchemaCost\\." "ChatTemplateGolden\\.")
