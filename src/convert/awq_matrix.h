#pragma once
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "convert/tensor_rows.h"

namespace foretoken {

inline constexpr int64_t kAwqPack = 8;  // codes of four bits in a word

// The tensors of a matrix of n rows and k columns as AutoAWQ's version "gemm" has them, in four
// bits with zeros: w = scale * (code - zero). A word holds eight rows in the order of its kernel.
struct AwqMatrix {
  std::vector<uint32_t> codes;   // qweight [k, n / 8]
  std::vector<uint32_t> zeros;   // qzeros [k / group, n / 8]
  std::vector<uint16_t> scales;  // [k / group, n], halves
};

// Errors as of TensorRows::read. k must be a multiple of the group, and n of kAwqPack.
Result<AwqMatrix> quantize_awq(const TensorRows& rows, int64_t group);

}  // namespace foretoken
