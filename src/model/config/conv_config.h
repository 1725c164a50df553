#pragma once
#include <cstdint>

namespace foretoken {

// Short convolutions in the place of attention (LFM 2).
struct ConvConfig {
  int32_t channels = 0;  // a rank has a part of them; 0: no layer has one
  int32_t width = 0;
  bool bias = false;  // of the convolution and the products around it

  bool exists() const { return channels > 0; }
};

}  // namespace foretoken
