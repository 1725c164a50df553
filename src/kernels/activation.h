#pragma once
#include <cstdint>

namespace foretoken {

enum class Activation : int32_t {
  kSilu,      // x / (1 + exp(-x))
  kGelu,      // x * (1 + erf(x / sqrt(2))) / 2
  kGeluTanh,  // x * (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
};

}  // namespace foretoken
