#pragma once
#include <cstddef>
#include <cstdint>

namespace foretoken {

// kF16: of tables that ops look rows up in (device/row_table.h); nothing is computed in it.
enum class DType : uint8_t { kF32, kBF16, kI32, kU64, kF16 };

constexpr size_t dtype_size(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kBF16:
    case DType::kF16:
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
    case DType::kF16:
      return "float16";
  }
  return "?";
}

}  // namespace foretoken
