#pragma once
#include <string>

namespace foretoken {

// What is written from the tables of this folder, and compared with the tree by
// tests/config/engine_pages_test.cpp; `foretoken fields PAGE` prints each.

// python/foretoken/_engine_fields.py: a dataclass with the fields that Python may set.
std::string python_engine_fields();

// docs/engine-fields.md, between its marks: a table for each group of fields.
std::string markdown_engine_fields();

// docs/other-engines.md, between its marks: names of vLLM, and flags of llama.cpp and others.
std::string markdown_engine_names();

}  // namespace foretoken
