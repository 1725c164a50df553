#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "model/layer/layer_spec.h"

namespace foretoken {

// A tensor of a layer: its name behind the layer's own, and its shape.
struct LayerTensor {
  std::string name;  // for example "self_attn.q_proj.weight"
  int64_t rows;
  int64_t cols = 0;         // 0: a vector of `rows` elements
  int32_t turned_rows = 0;  // rows of a head that turns with positions; else 0
  int64_t stacked = 0;      // as of TensorPart
  bool is_exact = false;    // as of TensorPart

  double size() const { return double(rows) * (cols > 0 ? double(cols) : 1.0); }
};

// All tensors of a layer that reads and adds to hidden states of that size, in the order in which
// it uses them.
std::vector<LayerTensor> layer_tensors(const LayerSpec& layer, const NormForm& norms,
                                       int32_t hidden_size);

}  // namespace foretoken
