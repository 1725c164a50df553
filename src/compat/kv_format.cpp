#include "compat/kv_format.h"

#include <algorithm>
#include <array>

#include "compat/compat.h"

namespace foretoken {
namespace {

constexpr NamedKvFormat kNamedKvFormats[] = {{"int8", "int8_per_token_head", KvFormat::kInt8},
                                             {"fp8", "fp8_e4m3", KvFormat::kFp8}};
constexpr std::array kModelTypes = {DType::kF32, DType::kBF16};

}  // namespace

std::span<const NamedKvFormat> named_kv_formats() { return kNamedKvFormats; }

bool is_unbuilt_kv_format(std::string_view name) {
  return name.starts_with("fp8") || name == "float16" || name == "half";
}

std::optional<DType> find_dtype(std::string_view name) {
  const auto found = std::find_if(kModelTypes.begin(), kModelTypes.end(),
                                  [&](DType type) { return name == dtype_name(type); });
  return found == kModelTypes.end() ? std::nullopt : std::optional(*found);
}

std::optional<KvFormat> find_kv_format(std::string_view name, DType dtype) {
  if (name == "auto" || name == dtype_name(dtype)) return KvFormat::kPlain;
  for (const NamedKvFormat& each : kNamedKvFormats) {
    if (name == each.name || name == each.alias) return each.format;
  }
  return std::nullopt;
}

KvFormat compressed_format(KvFormat format) {
  return format == KvFormat::kInt8 ? KvFormat::kPlain : format;
}

const char* kv_format_name(KvFormat format) {
  const auto found = std::find_if(std::begin(kNamedKvFormats), std::end(kNamedKvFormats),
                                  [&](const NamedKvFormat& each) { return each.format == format; });
  return found == std::end(kNamedKvFormats) ? "auto" : found->name;
}

Result<KvFormat> choose_kv_format(const std::string& name, DeviceType device, DType dtype,
                                  bool compressed) {
  FT_RETURN_IF_ERROR(compat({.device = &device_traits(device),
                             .kv_cache_dtype = name,
                             .dtype = dtype,
                             .compressed = compressed}));
  return *find_kv_format(name, dtype);
}

}  // namespace foretoken
