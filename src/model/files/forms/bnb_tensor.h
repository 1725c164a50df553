#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/dtype.h"
#include "model/files/containers/safetensors.h"

namespace foretoken {

// The tensors of a matrix as bitsandbytes stores it.
struct BnbParts {
  std::string name;                // where the matrix is plain: "X.weight"
  std::vector<std::string> names;  // of all its tensors
  const TensorView* codes = nullptr;
  const TensorView* scales = nullptr;  // X.weight.absmax, or X.SCB of eight bits
  const TensorView* order = nullptr;   // X.weight_format of eight bits: 0, by rows; may be null
  // Of four bits: X.weight.quant_map and what X.weight.quant_state.bitsandbytes__* says.
  const TensorView* table = nullptr;
  const TensorView* state = nullptr;
  // Of scales that are codes of eight bits themselves; null: they are floats.
  const TensorView* nested_table = nullptr;
  const TensorView* nested_scales = nullptr;
};

// Those of a checkpoint. InvalidArgument when a matrix lacks one of them.
Result<std::vector<BnbParts>> find_bnb(const std::map<std::string, const TensorView*>& tensors);

// A matrix of bitsandbytes: of four bits (NF4, FP4) value = table[code] * absmax of its block, the
// higher bits of a byte first; of eight value = code * SCB of its row / 127. Products are rounded
// as its own dequantising rounds them. The tensors must outlive it.
class BnbTensor {
 public:
  // InvalidArgument and Unsupported name the tensor that does not fit and the remedy.
  static Result<BnbTensor> create(const BnbParts& parts);

  const std::vector<int64_t>& shape() const { return shape_; }
  bool has_four_bits() const { return parts_.table != nullptr; }
  // Stores elements [first, first + count), rows one after the other, as `dtype` at `to`. Errors as
  // of TensorView::read. Any thread with its own `raw`.
  Status read_elements(int64_t first, int64_t count, DType dtype, void* to,
                       std::vector<std::byte>& raw) const;

 private:
  explicit BnbTensor(const BnbParts& parts) : parts_(parts) {}
  Status read_state();
  Status read_scales();
  float value_at(int64_t element, uint8_t byte) const;

  BnbParts parts_;
  std::vector<int64_t> shape_;
  int64_t block_ = 0;  // elements that share a scale
  std::array<float, 16> table_ = {};
  std::vector<float> scales_;  // of all blocks
  // Of nested scales.
  int64_t nested_block_ = 0;
  float nested_offset_ = 0;
};

}  // namespace foretoken
