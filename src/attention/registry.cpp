#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "attention/backend.h"
#include "attention/families.h"
#include "base/check.h"
#include "device/device_traits.h"

namespace foretoken {
namespace {

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

// Of backends for a type of device, or for a device that is here; of those for the same models as
// `like`, where that is not null.
std::string attention_remedy(DeviceType type, const Device* opened, const AttentionTraits* like) {
  std::string list;
  for (const AttentionBackend* backend : attention_backends()) {
    if (like != nullptr && like->is_latent != backend->traits().is_latent) continue;
    if (opened != nullptr ? !backend->runs_on(*opened) : !backend->traits().runs_on(type)) continue;
    const AttentionTraits& traits = backend->traits();
    list += (list.empty() ? "" : ", ") + std::string(traits.name);
    for (const char* alias : traits.aliases) list += std::string(" (also ") + alias + ")";
  }
  if (like == nullptr) return "; use auto or one of: " + list;
  return std::string("; use auto, or for models ") + (like->is_latent ? "with" : "without") +
         " latents one of: " + list;
}

Status no_backend(std::string_view name, DeviceType type, const Device* opened,
                  const AttentionTraits* like = nullptr) {
  return unsupported("attention backend '" + std::string(name) + "' does not exist on " +
                     device_traits(type).name + attention_remedy(type, opened, like));
}

}  // namespace

Status check_attention_name(std::string_view name, DeviceType type) {
  const bool known = equal_ignoring_case(name, "auto") || named_attention(name) != nullptr;
  return known ? Status() : no_backend(name, type, nullptr);
}

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
  return traits_.runs_on(device.type()) && has_attention(device, traits_.family);
}

bool AttentionBackend::serves(const AttentionDemand& demand) const {
  return traits_.is_latent == demand.is_latent() &&
         (traits_.serves == nullptr || traits_.serves(demand));
}

std::string AttentionBackend::model_needs() const {
  const std::string kind = traits_.is_latent ? "latent attention" : "attention without latents";
  return *traits_.model_needs == '\0' ? kind : kind + ", " + traits_.model_needs;
}

int64_t AttentionBackend::workspace_floats(const Device& device, int32_t max_rows,
                                           int32_t num_heads, int32_t head_dim) const {
  if (!device_traits(device.type()).cuts_attention) return 0;
  // Partial results of a split: its accumulator, maximum and sum. Splits are shared between blocks
  // only while there are few rows, since many rows fill the device alone; so the bound below, which
  // holds 12 rows of 32 heads over 128k positions, costs the larger batches nothing.
  constexpr int64_t kMaxSplits = AttentionSplits::of((128 << 10) - 1) + 1;
  constexpr int64_t kMaxFloats = int64_t{48} << 20;
  const int64_t wanted = int64_t{max_rows} * num_heads * kMaxSplits * (head_dim + 2);
  return std::min(wanted, kMaxFloats);
}

void AttentionBackend::run(Queue& queue, const AttentionArgs& args) const {
  AttentionArgs own = args;
  own.family = traits_.family;
  own.flex = program_;
  attention(queue, own);
}

bool is_attention_backend(const AttentionBackend& backend, std::string_view name) {
  const AttentionTraits& traits = backend.traits();
  if (equal_ignoring_case(traits.name, name)) return true;
  return std::any_of(traits.aliases.begin(), traits.aliases.end(),
                     [&](const char* alias) { return equal_ignoring_case(alias, name); });
}

const AttentionBackend* named_attention(std::string_view name) {
  for (const AttentionBackend* backend : attention_backends()) {
    if (is_attention_backend(*backend, name)) return backend;
  }
  return nullptr;
}

std::span<const AttentionBackend* const> attention_backends() {
  static const std::array backends = {&flash_attention(),
                                      &portable_attention(),
                                      &flashinfer_attention(),
                                      &flex_attention(),
                                      &flash_latent_attention(),
                                      &portable_latent_attention(),
                                      &flashinfer_latent_attention(),
                                      &flashmla_attention(),
                                      &cutlass_latent_attention()};
  return backends;
}

const AttentionBackend& default_attention(const AttentionDemand& demand, DeviceType type,
                                          const Device* opened) {
  for (const AttentionBackend* backend : attention_backends()) {
    if (!backend->traits().batch_invariant || !backend->serves(demand)) continue;
    if (opened != nullptr ? backend->runs_on(*opened) : backend->traits().runs_on(type)) {
      return *backend;
    }
  }
  FT_CHECK(false);
  return portable_attention();
}

Status check_attention_place(const AttentionBackend& backend, DeviceType type,
                             const Device* opened) {
  const AttentionTraits& traits = backend.traits();
  if (!traits.runs_on(type)) return no_backend(traits.name, type, opened, &traits);
  if (opened == nullptr || backend.runs_on(*opened)) return {};
  return unsupported("attention backend '" + std::string(traits.name) + "' needs " +
                     traits.device_needs + attention_remedy(type, opened, &traits));
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
