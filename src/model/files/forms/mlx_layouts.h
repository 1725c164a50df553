#pragma once
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "model/files/containers/safetensors.h"

namespace foretoken {

// A part of tensors' names as MLX's tools have it, and as transformers has it.
struct MlxName {
  std::string_view own;
  std::string_view common;
};

// What MLX's tools rename in the models of a family, beside what they rename in all of them
// (mlx_names.h), and how they count its norms.
struct MlxLayout {
  std::string_view marker;         // of names that only such folders have
  std::span<const MlxName> names;  // one after the other, all that a name has
  bool whole_norms = false;        // norms have 1 + w where transformers has w

  // The name of a tensor in a folder of transformers'.
  std::string without(std::string name) const;
};

// By the names that the files have; null: none of them.
const MlxLayout* find_mlx_layout(const std::map<std::string, const TensorView*>& tensors);

// Whether MLX's tools sanitised the weights: where a name has the part `sign` or, where that is
// null, as far as it shows by the names of a family or of stacked experts, or by turned
// convolutions.
bool is_sanitised_by_mlx(const std::map<std::string, const TensorView*>& tensors,
                         const char* sign = nullptr);

}  // namespace foretoken
