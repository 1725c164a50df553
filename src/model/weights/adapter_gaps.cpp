#include "model/weights/adapter_gaps.h"

#include <algorithm>
#include <map>
#include <set>

#include "model/weights/module_key.h"

namespace foretoken {
namespace {

// Of either sign, which is the last byte's highest bit.
bool is_zero(const LoraLinear& linear, DType dtype) {
  const size_t size = dtype_size(dtype);
  for (size_t i = 0; i < linear.b.size(); ++i) {
    const bool has_sign = i % size == size - 1;
    if ((linear.b[i] & std::byte(has_sign ? 0x7f : 0xff)) != std::byte{0}) return false;
  }
  return true;
}

bool changes_nothing(const LoraAdapter& adapter) {
  return adapter.wholes.empty() && adapter.bases.empty() && adapter.tokens.empty() &&
         std::ranges::all_of(adapter.linears, [&](const LoraLinear& linear) {
           return linear.magnitude.empty() && linear.factors.empty() &&
                  is_zero(linear, adapter.dtype);
         });
}

}  // namespace

Result<std::string> adapter_gap(const LoraAdapter& adapter, std::span<const std::string> modules) {
  if (changes_nothing(adapter)) {
    return std::string(
               "the adapter changes no text: all of its lora_B are zero, as before training or "
               "where "
               "they were saved without their values; ") +
           kSaveAdapter;
  }
  if (!adapter.config) return std::string();
  std::set<std::string> present;
  std::map<std::string, std::string> bodies;  // of a kind of module, what stands before its layers
  for (const LoraLinear& linear : adapter.linears) {
    const std::string key = module_key(linear.module);
    present.insert(key);
    if (linear.module.ends_with(key)) {
      bodies[behind_number(key)] = linear.module.substr(0, linear.module.size() - key.size());
    }
  }
  int64_t absent = 0, targeted = 0;
  std::string first;
  for (const std::string& module : modules) {
    const auto body = bodies.find(behind_number(module));
    if (body == bodies.end() || body->first.empty()) continue;
    FT_ASSIGN_OR_RETURN(const bool is_wanted, adapter.config->targets(body->second + module));
    if (!is_wanted) continue;
    ++targeted;
    if (present.contains(module)) continue;
    if (absent++ == 0) first = body->second + module;
  }
  if (absent == 0) return std::string();
  return "the adapter's files lack " + std::to_string(absent) + " of the " +
         std::to_string(targeted) + " linear layers that its adapter_config.json targets, as '" +
         first + "', which stay the model's own; name the others in layers_to_transform or " +
         "exclude_modules if that is meant, or " + kSaveAdapter;
}

}  // namespace foretoken
