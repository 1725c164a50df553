#pragma once
#include <string>

namespace foretoken {

// Tables in Markdown of what this build supports, made of its registries: docs/models.md,
// docs/formats.md and docs/speculation.md hold what `foretoken inspect --families`, `--formats` and
// `--drafters` print.

// Families of models that load, then those that do not and what they need.
std::string families_table();
// Quantised folders, GGUF's architectures and block types, and what `foretoken convert` writes.
std::string formats_tables();
// Drafters with their traits and fields, then methods that are known by name and not built.
std::string drafters_table();

}  // namespace foretoken
