#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/blocks/block_type.h"

namespace foretoken {

// general.quantization_version: of ggml's block layouts.
inline constexpr uint32_t kGgmlQuantizationVersion = 2;

// Which type each tensor of a GGUF file gets. Vectors are F32 in all of them, and rows that are no
// whole blocks of 256 elements get a type with blocks of 32.
struct GgufRecipe {
  std::string_view name;          // of `foretoken convert --type`
  uint32_t file_type;             // general.file_type, as llama.cpp numbers them
  std::string_view matrices;      // block type
  std::string_view output;        // of the output matrix
  bool more_for_some = false;     // Q6_K for some layers' attn_v and ffn_down, as *_M have it
  std::string_view description;   // for --help
  std::string_view experts = {};  // block type of experts' matrices, where they have another
};

std::span<const GgufRecipe> gguf_recipes();
// Null for an unknown name.
const GgufRecipe* find_gguf_recipe(std::string_view name);

// Bytes of so many elements of the type that most matrices get.
int64_t matrices_bytes(const GgufRecipe& recipe, int64_t elements);

// A tensor to place: its name as GGUF or Hugging Face has it, its layer (-1: none), and whether it
// is the output matrix.
struct PlacedTensor {
  std::string_view name;
  std::span<const int64_t> shape;
  int32_t layer = -1;
  bool is_output = false;
};

// Unsupported names the tensor when its rows are no whole blocks.
Result<const BlockType*> type_of(const GgufRecipe& recipe, const PlacedTensor& tensor,
                                 int32_t num_layers);

}  // namespace foretoken
