#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/files/containers/safetensors.h"
#include "model/files/forms/scaled_tensor.h"

namespace foretoken {

// A matrix of scaled codes, or a stack of them, under the name that it has where it is plain.
struct NamedScaled {
  std::string name;
  ScaledParts parts;
  // What each column is multiplied with (ModelOpt's AWQ, whose tools multiply what the matrix is
  // multiplied with); null: nothing.
  const TensorView* column_scales = nullptr;
  // Of FP8: what the rows that it multiplies are divided by where they are rounded; null: nothing.
  const TensorView* input_scale = nullptr;
  std::vector<std::string> names;  // of all its tensors
};

// Those of a checkpoint, as DeepSeek, Qwen, ModelOpt, Quark, FBGEMM and compressed-tensors name
// them: X.weight with X.weight_scale or X.weight_scale_inv, and X.weight_scale_2; X.weight_packed
// of bytes with X.weight_scale and X.weight_global_scale; experts in one tensor X with X_scale;
// gpt-oss's experts X_blocks with X_scales; DeepSeek V4's X.weight with X.scale. InvalidArgument
// when codes lack their scales.
Result<std::vector<NamedScaled>> find_scaled(
    const std::map<std::string, const TensorView*>& tensors);

// The largest number of `input_scale`; 0 where there is none, or it is no positive number.
Result<float> input_scale_of(const NamedScaled& named);

// Whether a tensor is a scale of what attention reads, which model/layer/attention/kv_scales.h
// loads or leaves;
bool is_attention_scale(std::string_view name);
// or of other activations, which are not rounded here.
bool is_activation_scale(std::string_view name);

}  // namespace foretoken
