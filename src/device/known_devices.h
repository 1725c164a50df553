#pragma once
#include <string_view>

namespace foretoken {

// What a device can do at most; kernels are judged by it.
struct DeviceLimits {
  double bytes_per_second = 0;  // read from its memory; 0: not known
  double flops_per_second = 0;  // of matrix products of bfloat16

  bool are_known() const { return bytes_per_second > 0; }
  // The least seconds for so much, when both go on at once.
  double seconds(double bytes, double flops) const;
};

// What holds of a product, whichever machine it is in. Folders above ask for what it says, never
// for its name (tools/check_questions.py).

// Of the device with this Device::name, as they were measured by other means than this library's
// (docs/performance.md); not known of most.
DeviceLimits known_limits(std::string_view device_name);

// Whether kernels that are for a product (empty: for any) run on the device with this name too.
bool runs_kernels_of(std::string_view product, std::string_view device_name);

}  // namespace foretoken
