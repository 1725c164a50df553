#include <string>
#include <vector>

#include "attention/families.h"
#include "compat/kv_format.h"
#include "compat/rules.h"

// Formats of KV entries: --kv-cache-dtype.

namespace foretoken {
namespace {

bool asks_for_kv(const Combination& c) {
  return !c.kv_cache_dtype.empty() && c.device != nullptr && c.dtype.has_value();
}

std::string kv_flag(const Combination& c) { return "--kv-cache-dtype " + c.kv_cache_dtype; }

// What --kv-cache-dtype takes beside all else, but for the names of the model's type: "; use auto,
// int8 or fp8".
std::string use_instead(const Combination& c) {
  std::vector<std::string> names = {"auto"};
  for (const NamedKvFormat& each : named_kv_formats()) {
    Combination changed = c;
    changed.kv_cache_dtype = each.name;
    if (is_helped(c, changed)) names.emplace_back(each.name);
  }
  std::string text = "; use " + names.front();
  for (size_t i = 1; i < names.size(); ++i) {
    text += (i + 1 < names.size() ? ", " : " or ") + names[i];
  }
  return text;
}

// What is asked for; empty where nothing is, or nothing that there is.
std::optional<KvFormat> asked_format(const Combination& c) {
  return asks_for_kv(c) ? find_kv_format(c.kv_cache_dtype, *c.dtype) : std::nullopt;
}

bool is_no_format(const Combination& c) { return asks_for_kv(c) && !asked_format(c); }

bool is_read(const AttentionBackend& backend, const Combination& c) {
  return backend.traits().reads(c.device->type, *asked_format(c));
}

std::string unread_format(const Combination& c) {
  const AttentionBackend& instead = attention_instead(c);
  Combination changed = c;
  changed.attention = &instead;
  return kv_flag(c) + " is not read by --attention-backend " + name_of(*c.attention) +
         (is_helped(c, changed)
              ? "; leave one of them out, or use --attention-backend " + name_of(instead)
              : use_instead(c));
}

const DeviceTraits* example_device(const char* name) { return find_device_type(name); }

// What names no format.
const CompatRule kFormatRules[] = {
    {"`--kv-cache-dtype`, `--dtype`",
     StatusCode::kUnsupported,
     [](const Combination& c) {
       return is_no_format(c) && find_dtype(c.kv_cache_dtype).has_value();
     },
     [](const Combination& c) {
       return kv_flag(c) + " is not the model's type, " + dtype_name(*c.dtype) + use_instead(c) +
              ", or give --dtype " + c.kv_cache_dtype;
     },
     {.device = example_device("cpu"), .kv_cache_dtype = "float32", .dtype = DType::kBF16}},
    {"`--kv-cache-dtype`",
     StatusCode::kUnsupported,
     [](const Combination& c) { return is_no_format(c) && is_unbuilt_kv_format(c.kv_cache_dtype); },
     [](const Combination& c) { return kv_flag(c) + " is not built" + use_instead(c); },
     {.device = example_device("cpu"), .kv_cache_dtype = "nvfp4", .dtype = DType::kBF16}},
    {"`--kv-cache-dtype`",
     StatusCode::kInvalidArgument,
     is_no_format,
     [](const Combination& c) {
       return "--kv-cache-dtype '" + c.kv_cache_dtype + "' is unknown" + use_instead(c);
     },
     {.device = example_device("cpu"), .kv_cache_dtype = "int9", .dtype = DType::kBF16}},
};

// Formats that are not read everywhere.
const CompatRule kReadRules[] = {
    {"`--block-size`, compressed entries",
     StatusCode::kInvalidArgument,
     [](const Combination& c) {
       return c.block_size && c.positions_each && *c.block_size % *c.positions_each != 0;
     },
     [](const Combination& c) {
       const std::string each = std::to_string(*c.positions_each);
       return "--block-size " + std::to_string(*c.block_size) + " is not a multiple of the " +
              each + " positions that have one entry; use one, for example " +
              std::to_string(4 * *c.positions_each);
     },
     {.positions_each = 4, .block_size = 2}},
    {"`--kv-cache-dtype`, `--attention-backend`",
     StatusCode::kInvalidArgument,
     [](const Combination& c) {
       return asked_format(c) && c.attention != nullptr && !is_read(*c.attention, c);
     },
     unread_format,
     {.device = example_device("cuda"),
      .attention = &flashinfer_attention(),
      .kv_cache_dtype = "fp8",
      .dtype = DType::kBF16}},
};

}  // namespace

std::span<const CompatRule> kv_format_rules() { return kFormatRules; }
std::span<const CompatRule> kv_read_rules() { return kReadRules; }

}  // namespace foretoken
