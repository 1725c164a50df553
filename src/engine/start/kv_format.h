#pragma once
#include <string>

#include "base/result.h"
#include "device/device.h"
#include "kernels/attention/kv_layer.h"

namespace foretoken {

// What --kv-cache-dtype means for a model of type `dtype`: auto, the name of that type, or int8
// (also int8_per_token_head). InvalidArgument or Unsupported otherwise.
Result<KvFormat> choose_kv_format(const std::string& name, DeviceType device, DType dtype);

}  // namespace foretoken
