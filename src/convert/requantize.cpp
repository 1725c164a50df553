#include "convert/requantize.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "convert/gguf_conversion.h"
#include "model/files/checkpoint.h"
#include "model/files/forms/convert.h"

namespace foretoken {
namespace {

// Keys that the new file has for itself.
bool is_replaced(std::string_view key) {
  return key == "general.file_type" || key == "general.quantization_version" ||
         key == "general.alignment" || key.starts_with("split.") ||
         key.starts_with("quantize.imatrix.");
}

// Matrices that are small and must be exact: routers, tables of positions, convolutions.
bool is_small_matrix(std::string_view name) {
  constexpr std::array kParts = {std::string_view("_norm."),
                                 std::string_view("ffn_gate_inp"),
                                 std::string_view("altup"),
                                 std::string_view("laurel"),
                                 std::string_view("ssm_conv"),
                                 std::string_view("position_embd"),
                                 std::string_view("token_types"),
                                 std::string_view("attn_rel_b"),
                                 std::string_view("per_layer_model_proj")};
  return !name.ends_with(".weight") || std::any_of(kParts.begin(), kParts.end(), [&](auto part) {
    return name.find(part) != std::string_view::npos;
  });
}

int32_t layer_of(const std::string& name) {
  constexpr std::string_view kLayer = "blk.";
  return name.starts_with(kLayer) ? std::atoi(name.c_str() + kLayer.size()) : -1;
}

Result<int32_t> num_layers(const GgufFile& file) {
  FT_ASSIGN_OR_RETURN(const auto architecture, file.text("general.architecture"));
  FT_ASSIGN_OR_RETURN(const auto layers, file.integer(architecture.value_or("") + ".block_count"));
  return static_cast<int32_t>(std::clamp<int64_t>(layers.value_or(0), 0, INT32_MAX));
}

// In the order in which they lie in the file.
std::vector<const GgufTensor*> in_order(const GgufFile& file) {
  std::vector<const GgufTensor*> tensors;
  for (const auto& part : file.parts()) {
    for (const auto& [name, tensor] : file.tensors()) {
      if (tensor.part == part.get()) tensors.push_back(&tensor);
    }
  }
  std::stable_sort(tensors.begin(), tensors.end(), [](const GgufTensor* a, const GgufTensor* b) {
    return a->part == b->part && a->offset < b->offset;
  });
  return tensors;
}

}  // namespace

Result<int64_t> requantize_gguf(const GgufFile& file, const GgufRecipe& recipe,
                                const ConvertOptions& options) {
  GgufKeys keys;
  for (const auto& [key, value] : file.raw_metadata()) {
    if (!is_replaced(key)) keys.add_raw(key, value);
  }
  keys.add_u32("general.file_type", recipe.file_type);
  keys.add_u32("general.quantization_version", kGgmlQuantizationVersion);
  FT_ASSIGN_OR_RETURN(const int32_t layers, num_layers(file));
  const bool has_output = file.tensors().contains("output.weight");
  std::vector<std::unique_ptr<TensorView>> views;
  std::vector<TensorToEncode> tensors;
  for (const GgufTensor* tensor : in_order(file)) {
    views.push_back(std::make_unique<TensorView>(gguf_tensor_view(*tensor)));
    TensorToEncode wanted{{tensor->name, tensor->type, tensor->shape}, views.back().get()};
    if (tensor->shape.size() > 1 && !is_small_matrix(tensor->name)) {
      FT_RETURN_IF_ERROR(check_convertible(*views.back()));
      const bool is_output = tensor->name == (has_output ? "output.weight" : "token_embd.weight");
      const PlacedTensor placed{tensor->name, tensor->shape, layer_of(tensor->name), is_output};
      FT_ASSIGN_OR_RETURN(wanted.entry.type, type_of(recipe, placed, layers));
    }
    tensors.push_back(std::move(wanted));
  }
  GgufConversion conversion(options);
  FT_RETURN_IF_ERROR(conversion.run(keys, tensors, {}, {}));
  return conversion.num_bytes();
}

}  // namespace foretoken
