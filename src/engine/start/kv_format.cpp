#include "engine/start/kv_format.h"

namespace foretoken {

Result<KvFormat> choose_kv_format(const std::string& name, DeviceType device, DType dtype) {
  const std::string flag = "--kv-cache-dtype " + name;
  if (name == "auto" || name == dtype_name(dtype)) return KvFormat::kPlain;
  if (name == "int8" || name == "int8_per_token_head") {
    if (device == DeviceType::kCpu) return KvFormat::kInt8;
    return unsupported(flag + " is built for the CPU only; use auto");
  }
  if (name == "bfloat16" || name == "float32") {
    return unsupported(flag + " is not the model's type, " + dtype_name(dtype) +
                       "; use auto or int8, or give --dtype " + name);
  }
  const bool is_known = name.starts_with("fp8") || name == "float16" || name == "half";
  const std::string use = device == DeviceType::kCpu ? "; use auto or int8" : "; use auto";
  if (is_known) return unsupported(flag + " is not built" + use);
  return invalid_argument("--kv-cache-dtype '" + name + "' is unknown" + use);
}

}  // namespace foretoken
