#pragma once
#include <cstdint>
#include <random>
#include <vector>

#include "base/bfloat16.h"
#include "base/half.h"
#include "device/dtype.h"

namespace foretoken {

// Normally distributed floats times `scale`.
inline std::vector<float> random_floats(size_t count, uint64_t seed, float scale = 1.0f) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(generator) * scale;
  return values;
}

// Values stored as kF32, kBF16 or kF16, with the exact float of each element for reference
// arithmetic.
struct TypedData {
  std::vector<uint8_t> bytes;
  std::vector<float> values;
  const void* data() const { return bytes.data(); }
};

inline TypedData typed_data(const std::vector<float>& values, DType dtype) {
  TypedData out{std::vector<uint8_t>(values.size() * dtype_size(dtype)), values};
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype == DType::kF32) {
      reinterpret_cast<float*>(out.bytes.data())[i] = values[i];
    } else {
      const bool is_half = dtype == DType::kF16;
      const uint16_t bits = is_half ? half_from_float(values[i]) : bf16_from_float(values[i]);
      reinterpret_cast<uint16_t*>(out.bytes.data())[i] = bits;
      out.values[i] = is_half ? half_to_float(bits) : bf16_to_float(bits);
    }
  }
  return out;
}

// The floats that bytes of `dtype` stand for.
inline std::vector<float> to_floats(const std::vector<uint8_t>& bytes, DType dtype) {
  std::vector<float> values(bytes.size() / dtype_size(dtype));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = dtype == DType::kF32
                    ? reinterpret_cast<const float*>(bytes.data())[i]
                    : bf16_to_float(reinterpret_cast<const uint16_t*>(bytes.data())[i]);
  }
  return values;
}

}  // namespace foretoken
