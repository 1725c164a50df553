#include "apps/manual/support_tables.h"

#include <spdlog/fmt/fmt.h>

#include <sstream>
#include <string_view>
#include <vector>

#include "draft/registry.h"
#include "gguf/blocks/block_codes.h"
#include "gguf/gguf_recipe.h"
#include "gguf/hf_names.h"
#include "model/config/architecture.h"
#include "model/config/families.h"
#include "model/config/missing_parts.h"
#include "model/config/text_part.h"
#include "model/files/forms/quantization_methods.h"

namespace foretoken {
namespace {

std::string row(const std::vector<std::string>& cells) {
  std::string text = "|";
  for (const std::string& cell : cells) text += cell.empty() ? " |" : " " + cell + " |";
  return text + "\n";
}

std::string head(const std::vector<std::string>& names) {
  return row(names) + row(std::vector<std::string>(names.size(), "---"));
}

std::string code(std::string_view text) { return "`" + std::string(text) + "`"; }

// Names with " " between them as `a`, `b`.
std::string codes(const char* names) {
  std::string text;
  std::istringstream words(names);
  for (std::string word; words >> word;) text += (text.empty() ? "" : ", ") + code(word);
  return text;
}

double bits_of(const BlockType& type) {
  return 8.0 * static_cast<double>(type.bytes) / static_cast<double>(type.elements);
}

// What becomes of a GGUF tensor of this type on a CPU.
std::string kept_as(const BlockType& type) {
  if (type.decode == nullptr) return "refused";
  if (form_of_blocks(type) != nullptr) return "quantised";
  return type.elements == 1 && type.bytes <= 4 ? "as it is" : "widened";
}

std::string block_types_table() {
  std::string text = head({"block type", "weights a block", "bits a weight", "on a CPU"});
  for (const BlockType& type : block_types()) {
    text += row({std::string(type.name), std::to_string(type.elements),
                 fmt::format("{:.4g}", bits_of(type)), kept_as(type)});
  }
  return text;
}

std::string recipes_table() {
  std::string text = head({"`--type`", "matrices", "output matrix", "what"});
  for (const GgufRecipe& recipe : gguf_recipes()) {
    text += row({code(recipe.name), std::string(recipe.matrices), std::string(recipe.output),
                 std::string(recipe.description)});
  }
  return text;
}

}  // namespace

std::string families_table() {
  std::string text = head({"family", "architecture", ""});
  for (const Architecture& entry : architectures()) {
    text += row({entry.description, code(entry.name), "loads"});
  }
  for (const WrappedFamily& entry : wrapped_families()) {
    text += row({entry.description, code(entry.architecture), "loads"});
  }
  for (const RefusedFamily& family : refused_families()) {
    text += row({family.description, code(family.architecture),
                 "needs " + missing_parts_text(family.lacks)});
  }
  return text;
}

std::string formats_tables() {
  std::string text = head({"`quant_method`", "what is read"});
  for (const QuantizationMethod& method : quantization_methods()) {
    text += row({method.names, method.description});
  }
  text += "\n" + head({"`general.architecture` of a GGUF file", "read as", "written"});
  for (const GgufArchitecture& entry : gguf_architectures()) {
    text += row({std::string(entry.name), code(entry.hf_class), entry.is_written ? "yes" : "no"});
  }
  return text + "\n" + block_types_table() + "\n" + recipes_table();
}

std::string drafters_table() {
  std::string text = head({"method", "also", "what it is", "`model`", "KV of its own", "fields"});
  for (const DrafterEntry& entry : drafters()) {
    std::string fields;
    for (const MethodField& field : entry.fields) {
      fields += (fields.empty() ? "" : ", ") + code(field.name);
    }
    const DrafterTraits& traits = entry.traits;
    text += row({code(entry.name), codes(entry.aliases), entry.description,
                 traits.needs_model   ? "needed"
                 : traits.reads_files ? "or the target's folder"
                                      : "none",
                 traits.has_kv ? "yes" : "no", fields});
  }
  for (const UnbuiltDrafter& unbuilt : unbuilt_drafters()) {
    text += row({code(unbuilt.name), "", unbuilt.reason, "", "", codes(unbuilt.fields)});
  }
  return text;
}

}  // namespace foretoken
