#pragma once
#include <cstddef>
#include <cstdint>

namespace foretoken {

enum class DType : uint8_t { kF32, kBF16, kI32, kU64 };

constexpr size_t dtype_size(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kBF16:
      return 2;
    case DType::kU64:
      return 8;
  }
  return 0;
}

constexpr const char* dtype_name(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "float32";
    case DType::kBF16:
      return "bfloat16";
    case DType::kI32:
      return "int32";
    case DType::kU64:
      return "uint64";
  }
  return "?";
}

}  // namespace foretoken
