#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "attention/backend.h"
#include "attention/flashinfer.h"
#include "attention/portable.h"

namespace foretoken {
namespace {

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

bool is_of_type(const AttentionTraits& traits, DeviceType device) {
  return device == DeviceType::kCpu ? traits.cpu : traits.cuda;
}

std::string list_backends(const Device& device) {
  std::string list;
  for (const AttentionBackend* backend : attention_backends()) {
    if (!backend->runs_on(device)) continue;
    const AttentionTraits& traits = backend->traits();
    list += (list.empty() ? "" : ", ") + std::string(traits.name);
    for (const char* alias : traits.aliases) list += std::string(" (also ") + alias + ")";
  }
  return list;
}

}  // namespace

bool AttentionBackend::runs_on(const Device& device) const {
  return is_of_type(traits(), device.type());
}

bool is_attention_backend(const AttentionBackend& backend, std::string_view name) {
  const AttentionTraits& traits = backend.traits();
  if (equal_ignoring_case(traits.name, name)) return true;
  return std::any_of(traits.aliases.begin(), traits.aliases.end(),
                     [&](const char* alias) { return equal_ignoring_case(alias, name); });
}

std::span<const AttentionBackend* const> attention_backends() {
  static const std::array<const AttentionBackend*, 2> backends = {&portable_attention(),
                                                                  &flashinfer_attention()};
  return backends;
}

Result<const AttentionBackend*> find_attention_backend(std::string_view name,
                                                       const Device& device) {
  const bool is_auto = equal_ignoring_case(name, "auto");
  const std::string remedy = "; use auto or one of: " + list_backends(device);
  const std::string asked = "attention backend '" + std::string(name) + "' ";
  for (const AttentionBackend* backend : attention_backends()) {
    const AttentionTraits& traits = backend->traits();
    if (!is_of_type(traits, device.type())) continue;
    if (!(is_auto ? traits.batch_invariant : is_attention_backend(*backend, name))) continue;
    if (backend->runs_on(device)) return backend;
    if (!is_auto) return unsupported(asked + "needs " + traits.device_needs + remedy);
  }
  return unsupported(asked + "does not exist on " +
                     (device.type() == DeviceType::kCpu ? "cpu" : "cuda") + remedy);
}

}  // namespace foretoken
