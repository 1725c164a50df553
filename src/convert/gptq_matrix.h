#pragma once
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "convert/tensor_rows.h"

namespace foretoken {

// How a matrix is quantised: round to nearest, symmetric around 2^(bits - 1).
struct GptqForm {
  int bits = 4;         // or 8
  int64_t group = 128;  // columns that share a scale

  int64_t per_word() const { return 32 / bits; }
};

// The tensors of a matrix of n rows and k columns in GPTQ's first format, as AutoGPTQ writes them:
// w = scale * (code - (zero + 1)).
struct GptqMatrix {
  std::vector<uint32_t> codes;   // qweight [k / per_word, n]
  std::vector<uint32_t> zeros;   // qzeros [k / group, n / per_word]
  std::vector<uint16_t> scales;  // [k / group, n], halves
  std::vector<int32_t> groups;   // g_idx [k]
};

// Errors as of TensorRows::read. k must be a multiple of the group, and n and k of per_word.
Result<GptqMatrix> quantize_gptq(const TensorRows& rows, const GptqForm& form);

}  // namespace foretoken
