#include "model/convert.h"

#include <bit>
#include <cstring>

#include "base/bfloat16.h"
#include "base/check.h"
#include "kernels/fill_random.h"
#include "kernels/random_weight.h"

namespace foretoken {
namespace {

// Calls store(i, value as float) for every element; the source may be unaligned.
template <class Store>
void for_each_float(FileDType dtype, const std::byte* data, int64_t count, Store store) {
  for (int64_t i = 0; i < count; ++i) {
    if (dtype == FileDType::kF32) {
      float value;
      std::memcpy(&value, data + 4 * i, sizeof value);
      store(i, value);
    } else {
      uint16_t bits;
      std::memcpy(&bits, data + 2 * i, sizeof bits);
      store(i, dtype == FileDType::kBF16 ? bf16_to_float(bits) : half_to_float(bits));
    }
  }
}

}  // namespace

float half_to_float(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t rest = bits & 0x7fffu;
  if (rest >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | ((rest & 0x3ffu) << 13));
  if (rest < 0x400u) {
    const float magnitude = static_cast<float>(rest) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((rest << 13) + ((127u - 15u) << 23)));
}

bool has_type(const TensorView& tensor, DType dtype) {
  return (tensor.dtype == FileDType::kF32 && dtype == DType::kF32) ||
         (tensor.dtype == FileDType::kBF16 && dtype == DType::kBF16);
}

Status check_convertible(const TensorView& tensor) {
  if (tensor.dtype == FileDType::kF32 || tensor.dtype == FileDType::kBF16 ||
      tensor.dtype == FileDType::kF16) {
    return {};
  }
  return unsupported(tensor.file + ": tensor '" + tensor.name + "' has dtype " + tensor.dtype_name +
                     "; convert the model to F32, BF16 or F16");
}

Status convert_elements(const TensorView& tensor, const std::byte* data, int64_t count, DType dtype,
                        void* out) {
  FT_CHECK(dtype == DType::kF32 || dtype == DType::kBF16);
  FT_RETURN_IF_ERROR(check_convertible(tensor));
  if (has_type(tensor, dtype)) {
    if (count > 0) std::memcpy(out, data, static_cast<size_t>(count) * dtype_size(dtype));
  } else if (dtype == DType::kF32) {
    for_each_float(tensor.dtype, data, count,
                   [out = static_cast<float*>(out)](int64_t i, float v) { out[i] = v; });
  } else {
    for_each_float(
        tensor.dtype, data, count,
        [out = static_cast<uint16_t*>(out)](int64_t i, float v) { out[i] = bf16_from_float(v); });
  }
  return {};
}

Status convert_tensor(const TensorView& tensor, DType dtype, void* out) {
  return convert_elements(tensor, tensor.data, tensor.num_elements(), dtype, out);
}

Result<std::vector<int64_t>> read_integers(const TensorView& tensor) {
  if (tensor.dtype != FileDType::kI64) {
    return unsupported(tensor.file + ": tensor '" + tensor.name + "' has dtype " +
                       tensor.dtype_name + ", but must be I64; convert it");
  }
  std::vector<int64_t> values(static_cast<size_t>(tensor.num_elements()));
  if (!values.empty()) std::memcpy(values.data(), tensor.data, values.size() * sizeof(int64_t));
  return values;
}

void fill_random(std::string_view name, int64_t count, float deviation, DType dtype, void* out) {
  const float scale = random_weight_scale(deviation);
  const uint64_t seed = random_weight_seed(name);
  for (int64_t i = 0; i < count; ++i) {
    const float value = random_weight(seed, static_cast<uint64_t>(i), scale);
    if (dtype == DType::kF32) {
      static_cast<float*>(out)[i] = value;
    } else {
      static_cast<uint16_t*>(out)[i] = bf16_from_float(value);
    }
  }
}

}  // namespace foretoken
