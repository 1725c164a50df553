#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "attention/backend.h"
#include "attention/flashinfer.h"
#include "attention/portable.h"
#include "device/device_traits.h"

namespace foretoken {
namespace {

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

// Of backends for a type of device, or for a device that is here.
std::string attention_remedy(DeviceType type, const Device* opened) {
  std::string list;
  for (const AttentionBackend* backend : attention_backends()) {
    if (opened != nullptr ? !backend->runs_on(*opened) : !backend->traits().runs_on(type)) continue;
    const AttentionTraits& traits = backend->traits();
    list += (list.empty() ? "" : ", ") + std::string(traits.name);
    for (const char* alias : traits.aliases) list += std::string(" (also ") + alias + ")";
  }
  return "; use auto or one of: " + list;
}

Status no_backend(std::string_view name, DeviceType type, const Device* opened) {
  return unsupported("attention backend '" + std::string(name) + "' does not exist on " +
                     device_traits(type).name + attention_remedy(type, opened));
}

}  // namespace

bool AttentionTraits::runs_on(DeviceType device) const {
  return std::any_of(places.begin(), places.end(),
                     [&](const AttentionPlace& place) { return place.device == device; });
}

bool AttentionTraits::reads(DeviceType device, KvFormat format) const {
  return std::any_of(places.begin(), places.end(), [&](const AttentionPlace& place) {
    return place.device == device && std::find(place.kv_formats.begin(), place.kv_formats.end(),
                                               format) != place.kv_formats.end();
  });
}

bool AttentionBackend::runs_on(const Device& device) const {
  return traits().runs_on(device.type()) &&
         (!traits().any_order || device.has_any_order_attention());
}

void AttentionBackend::run(Queue& queue, const AttentionArgs& args) const {
  AttentionArgs own = args;
  own.any_order = traits().any_order;
  attention(queue, own);
}

bool is_kv_format_built(DeviceType device, KvFormat format) {
  const auto backends = attention_backends();
  return std::any_of(backends.begin(), backends.end(), [&](const AttentionBackend* backend) {
    return backend->traits().reads(device, format);
  });
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

Status check_attention_place(const AttentionBackend& backend, DeviceType type,
                             const Device* opened) {
  const AttentionTraits& traits = backend.traits();
  if (!traits.runs_on(type)) return no_backend(traits.name, type, opened);
  if (opened == nullptr || backend.runs_on(*opened)) return {};
  return unsupported("attention backend '" + std::string(traits.name) + "' needs " +
                     traits.device_needs + attention_remedy(type, opened));
}

Result<const AttentionBackend*> find_attention_backend(std::string_view name,
                                                       const Device& device) {
  const bool is_auto = equal_ignoring_case(name, "auto");
  for (const AttentionBackend* backend : attention_backends()) {
    if (is_auto ? !backend->traits().batch_invariant : !is_attention_backend(*backend, name)) {
      continue;
    }
    const Status status = check_attention_place(*backend, device.type(), &device);
    if (status.ok()) return backend;
    if (!is_auto) return status;
  }
  return no_backend(name, device.type(), &device);
}

}  // namespace foretoken
