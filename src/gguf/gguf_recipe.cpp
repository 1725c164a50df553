#include "gguf/gguf_recipe.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "base/check.h"

namespace foretoken {
namespace {

constexpr GgufRecipe kRecipes[] = {
    {"f32", 0, "F32", "F32", false, "32-bit floats"},
    {"f16", 1, "F16", "F16", false, "16-bit floats"},
    {"bf16", 32, "BF16", "BF16", false, "bfloat16"},
    {"q8_0", 7, "Q8_0", "Q8_0", false, "8 bits, a scale for 32"},
    {"q4_0", 2, "Q4_0", "Q6_K", false, "4 bits, a scale for 32"},
    {"q4_1", 3, "Q4_1", "Q6_K", false, "4 bits, scale and minimum for 32"},
    {"q5_0", 8, "Q5_0", "Q6_K", false, "5 bits, a scale for 32"},
    {"q5_1", 9, "Q5_1", "Q6_K", false, "5 bits, scale and minimum for 32"},
    {"iq4_nl", 25, "IQ4_NL", "Q6_K", false, "4 bits in uneven steps, a scale for 32"},
    {"q4_k", 14, "Q4_K", "Q6_K", false, "4 bits, scaled scale and minimum for 32"},
    {"q4_k_m", 15, "Q4_K", "Q6_K", true, "q4_k with 6 bits where they help most"},
    {"q5_k", 16, "Q5_K", "Q6_K", false, "5 bits, scaled scale and minimum for 32"},
    {"q5_k_m", 17, "Q5_K", "Q6_K", true, "q5_k with 6 bits where they help most"},
    {"q6_k", 18, "Q6_K", "Q6_K", false, "6 bits, a scale for 16"},
    {"mxfp4_moe", 38, "Q8_0", "Q8_0", false, "q8_0 with experts in MXFP4", "MXFP4"},
};

// Matrices that more bits help most, by GGUF's names and by Hugging Face's.
constexpr std::string_view kMoreHelps[] = {".attn_v.", ".ffn_down.", ".v_proj.", ".down_proj."};

const BlockType* block_type(std::string_view name) {
  const BlockType* type = find_block_type(name);
  FT_CHECK_MSG(type != nullptr, std::string(name));
  return type;
}

// For rows that are no whole blocks of 256: the next larger type of blocks of 32, as llama-quantize
// has it.
const BlockType* of_short_blocks(const BlockType* type) {
  constexpr std::pair<std::string_view, std::string_view> kNext[] = {
      {"Q4_K", "Q5_0"}, {"Q5_K", "Q5_1"}, {"Q6_K", "Q8_0"}};
  for (const auto& [name, next] : kNext) {
    if (type->name == name) return block_type(next);
  }
  return type;
}

// By GGUF's names and by Hugging Face's.
bool is_of_experts(std::string_view name) {
  return name.find("_exps.") != std::string_view::npos ||
         name.find(".experts.") != std::string_view::npos;
}

// The first and the last eighth of the layers, and every third between.
bool gets_more(int32_t layer, int32_t num_layers) {
  const int32_t eighth = num_layers / 8;
  return layer < eighth || layer >= 7 * num_layers / 8 || (layer - eighth) % 3 == 2;
}

}  // namespace

std::span<const GgufRecipe> gguf_recipes() { return kRecipes; }

const GgufRecipe* find_gguf_recipe(std::string_view name) {
  for (const GgufRecipe& recipe : kRecipes) {
    if (recipe.name == name) return &recipe;
  }
  return nullptr;
}

int64_t matrices_bytes(const GgufRecipe& recipe, int64_t elements) {
  const BlockType* type = block_type(recipe.matrices);
  return elements / type->elements * type->bytes;
}

Result<const BlockType*> type_of(const GgufRecipe& recipe, const PlacedTensor& tensor,
                                 int32_t num_layers) {
  if (tensor.shape.size() < 2) return block_type("F32");
  const BlockType* type = block_type(recipe.matrices);
  const int64_t cols = tensor.shape.back();
  if (tensor.is_output) {
    type = block_type(recipe.output);
  } else if (!recipe.experts.empty() && is_of_experts(tensor.name)) {
    type = block_type(recipe.experts);
  }
  const bool some = std::any_of(std::begin(kMoreHelps), std::end(kMoreHelps), [&](auto part) {
    return tensor.name.find(part) != std::string_view::npos;
  });
  if (recipe.more_for_some && some && gets_more(tensor.layer, num_layers)) {
    type = block_type("Q6_K");
  }
  if (cols % type->elements != 0) type = of_short_blocks(type);
  if (cols % type->elements == 0) return type;
  return unsupported("the tensor " + std::string(tensor.name) + " has rows of " +
                     std::to_string(cols) + " elements, which are no whole blocks of " +
                     std::to_string(type->elements) + " as " + std::string(type->name) +
                     " has them; choose --type " +
                     (type->elements > 32 && cols % 32 == 0 ? "q8_0 or q4_0" : "bf16 or f16"));
}

}  // namespace foretoken
