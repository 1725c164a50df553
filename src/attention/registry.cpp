#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "attention/backend.h"
#include "attention/portable.h"

namespace foretoken {
namespace {

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

bool has_name(const AttentionTraits& traits, std::string_view name) {
  if (equal_ignoring_case(traits.name, name)) return true;
  return std::any_of(traits.aliases.begin(), traits.aliases.end(),
                     [&](const char* alias) { return equal_ignoring_case(alias, name); });
}

bool runs_on(const AttentionTraits& traits, DeviceType device) {
  return device == DeviceType::kCpu ? traits.cpu : traits.cuda;
}

std::string list_backends(DeviceType device) {
  std::string list;
  for (const AttentionBackend* backend : attention_backends()) {
    const AttentionTraits& traits = backend->traits();
    if (!runs_on(traits, device)) continue;
    list += (list.empty() ? "" : ", ") + std::string(traits.name);
    for (const char* alias : traits.aliases) list += std::string(" (also ") + alias + ")";
  }
  return list;
}

}  // namespace

std::span<const AttentionBackend* const> attention_backends() {
  static const std::array<const AttentionBackend*, 1> backends = {&portable_attention()};
  return backends;
}

Result<const AttentionBackend*> find_attention_backend(std::string_view name, DeviceType device) {
  for (const AttentionBackend* backend : attention_backends()) {
    const AttentionTraits& traits = backend->traits();
    if (!runs_on(traits, device)) continue;
    if (equal_ignoring_case(name, "auto") || has_name(traits, name)) return backend;
  }
  return unsupported("attention backend '" + std::string(name) + "' does not exist on " +
                     (device == DeviceType::kCpu ? "cpu" : "cuda") +
                     "; use auto or one of: " + list_backends(device));
}

}  // namespace foretoken
