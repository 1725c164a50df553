#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "device/device.h"
#include "kernels/attention/kv_layer.h"

namespace foretoken {

// A format of KV entries as --kv-cache-dtype names it; the model's own type has no row.
struct NamedKvFormat {
  const char* name;
  std::span<const char* const> aliases;  // others' names of the same, or of what it stands in for
  KvFormat format;
};
std::span<const NamedKvFormat> named_kv_formats();

// Whether other engines have such a format and no device here has it.
bool is_unbuilt_kv_format(std::string_view name);

// What an entry is of otherwise than a name says that stands in for another format; empty: as it
// says.
std::string kv_format_note(std::string_view name);

// bfloat16 (bf16) and float32, the types that a model can have.
std::optional<DType> find_dtype(std::string_view name);

// What a name means for a model of type `dtype`: auto and the name of that type are kPlain.
std::optional<KvFormat> find_kv_format(std::string_view name, DType dtype);

// What a name means on a device, or what compat says against it.
Result<KvFormat> choose_kv_format(const std::string& name, DeviceType device, DType dtype);

// The name of a format, the model's own being auto.
const char* kv_format_name(KvFormat format);

}  // namespace foretoken
