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

}  // namespace foretoken
