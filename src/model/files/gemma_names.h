#pragma once
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/files/containers/safetensors.h"

namespace foretoken {

// A matrix as Google's quantised Gemma checkpoints have it (quant_method gemma, transformers 5):
// codes with a float for a row, or for some of a row's columns in tables.
struct GemmaMatrix {
  std::string name;                // "X.weight"
  std::vector<std::string> names;  // of all its tensors
  const TensorView* codes = nullptr;
  const TensorView* scales = nullptr;  // [n, 1], of tables [n, groups]
  // 2 and 4: bytes [n, k * bits / 8] of codes less 2^(bits - 1), the first in the lowest bits; 8:
  // signed bytes [n, k].
  int32_t bits = 4;
};

// Whether there may be any: codes under the names that such a checkpoint has.
bool has_gemma(const std::map<std::string, const TensorView*>& tensors);

// Those of a checkpoint, but layers' matrices of eight bits, which have the names of other tools.
// `quantization` says how many bits a module has: num_bits, before which the first pattern of
// module_quant_configs goes that its path in the file holds. InvalidArgument names what lacks its
// scales, or a pattern or number that cannot be read; `where` begins the messages.
Result<std::vector<GemmaMatrix>> find_gemma(const std::map<std::string, const TensorView*>& tensors,
                                            const nlohmann::ordered_json& quantization,
                                            const std::string& where);

// Scales of activations and of caches, which nothing here reads.
bool is_gemma_range(std::string_view name);

}  // namespace foretoken
