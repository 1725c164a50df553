#include "compat/kv_format.h"

#include <algorithm>
#include <array>

#include "compat/compat.h"

namespace foretoken {
namespace {

constexpr const char* kFiveBitsOfRange = "fp8_e5m2";
constexpr const char* kInt8Aliases[] = {"int8_per_token_head"};
// Intel's is E4M3, too, and that of DeepSeek's latents is what fp8 is for these.
constexpr const char* kFp8Aliases[] = {"fp8_e4m3", "fp8_inc", "fp8_ds_mla", kFiveBitsOfRange};
constexpr NamedKvFormat kNamedKvFormats[] = {{"int8", kInt8Aliases, KvFormat::kInt8},
                                             {"fp8", kFp8Aliases, KvFormat::kFp8}};
constexpr const char* kUnbuilt[] = {"fp8",  "nvfp4",      "mxfp4",   "fp4",
                                    "int4", "turboquant", "float16", "half"};
constexpr std::array kModelTypes = {DType::kF32, DType::kBF16};

}  // namespace

std::span<const NamedKvFormat> named_kv_formats() { return kNamedKvFormats; }

bool is_unbuilt_kv_format(std::string_view name) {
  return std::any_of(std::begin(kUnbuilt), std::end(kUnbuilt),
                     [&](const char* each) { return name.starts_with(each); });
}

std::string kv_format_note(std::string_view name) {
  if (name != kFiveBitsOfRange) return {};
  return "entries are E4M3 codes, as with fp8: of the same size and finer than E5M2, but none "
         "beyond "
         "448 times the checkpoint's scale";
}

std::optional<DType> find_dtype(std::string_view name) {
  if (name == "bf16") return DType::kBF16;
  const auto found = std::find_if(kModelTypes.begin(), kModelTypes.end(),
                                  [&](DType type) { return name == dtype_name(type); });
  return found == kModelTypes.end() ? std::nullopt : std::optional(*found);
}

std::optional<KvFormat> find_kv_format(std::string_view name, DType dtype) {
  if (name == "auto" || find_dtype(name) == dtype) return KvFormat::kPlain;
  const auto is_named = [&](const NamedKvFormat& each) {
    return name == each.name ||
           std::find(each.aliases.begin(), each.aliases.end(), name) != each.aliases.end();
  };
  const auto found = std::find_if(std::begin(kNamedKvFormats), std::end(kNamedKvFormats), is_named);
  if (found == std::end(kNamedKvFormats)) return std::nullopt;
  return found->format;
}

const char* kv_format_name(KvFormat format) {
  const auto found = std::find_if(std::begin(kNamedKvFormats), std::end(kNamedKvFormats),
                                  [&](const NamedKvFormat& each) { return each.format == format; });
  return found == std::end(kNamedKvFormats) ? "auto" : found->name;
}

Result<KvFormat> choose_kv_format(const std::string& name, DeviceType device, DType dtype) {
  FT_RETURN_IF_ERROR(
      compat({.device = &device_traits(device), .kv_cache_dtype = name, .dtype = dtype}));
  return *find_kv_format(name, dtype);
}

}  // namespace foretoken
