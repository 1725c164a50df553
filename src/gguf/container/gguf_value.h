#pragma once
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace foretoken {

// A metadata value of a GGUF file. Numbers of all widths are widened; arrays hold one type.
using GgufValue = std::variant<bool, int64_t, uint64_t, double, std::string, std::vector<bool>,
                               std::vector<int64_t>, std::vector<uint64_t>, std::vector<double>,
                               std::vector<std::string>>;

// How a file stores a value; by the numbers that files have.
enum class GgufType : uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kText,
  kArray,
  kU64,
  kI64,
  kF64
};

}  // namespace foretoken
