#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "device/device.h"
#include "kernels/attention/attention.h"

namespace foretoken {

// A type of device that a backend runs on, and the formats of KV entries that it reads there.
struct AttentionPlace {
  DeviceType device;
  std::span<const KvFormat> kv_formats;
};

// What an attention backend can do. engine/compat.h decides by it what goes together, and the
// support matrix is printed from it.
struct AttentionTraits {
  const char* name;
  std::span<const char* const> aliases;  // names other engines use for the same choice
  const char* description;
  std::span<const AttentionPlace> places;
  bool batch_invariant;
  bool in_graphs = true;  // false: its ops cannot be captured
  // AttentionArgs::any_order: it needs a device that has kernels for that.
  bool any_order = false;
  const char* device_needs = "nothing more";  // beside a device of these types, to read
  const char* model_needs = "every model";    // what `serves` asks for, to read

  bool runs_on(DeviceType device) const;
  bool reads(DeviceType device, KvFormat format) const;
};

// What a model asks of attention.
struct AttentionDemand {
  DType dtype = DType::kF32;
  int32_t head_dim = 0;
  float softcap = 0;             // of scores; 0: none
  bool has_full_layers = false;  // some see all positions
};

// Attention over the paged KV cache. Stateless and thread-safe; lives as long as the process.
class AttentionBackend {
 public:
  virtual ~AttentionBackend() = default;
  virtual const AttentionTraits& traits() const = 0;
  // Whether `device` has its kernels: one of its types, and what device_needs says.
  bool runs_on(const Device& device) const;
  // Whether it has anything for such a model that no other backend has.
  virtual bool serves(const AttentionDemand&) const { return true; }
  // Floats of scratch that `run` wants in AttentionArgs::workspace for up to max_rows rows.
  virtual int64_t workspace_floats(const Device& device, int32_t max_rows, int32_t num_heads,
                                   int32_t head_dim) const = 0;
  // Enqueues attention for the live rows.
  void run(Queue& queue, const AttentionArgs& args) const;
};

// Formats that any backend reads on such a device.
bool is_kv_format_built(DeviceType device, KvFormat format);

// All backends, best first.
std::span<const AttentionBackend* const> attention_backends();

// Whether it is the backend's name or alias, in any case.
bool is_attention_backend(const AttentionBackend& backend, std::string_view name);

// OK where the backend runs on devices of the type, and on `opened` if that is not null. Otherwise
// Unsupported, with what is missing and the list of what there is.
Status check_attention_place(const AttentionBackend& backend, DeviceType type,
                             const Device* opened);

// The backend with this name or alias, or with "auto" the first that is batch-invariant and runs on
// `device`. Unsupported, with what is missing or the list of what exists, otherwise.
Result<const AttentionBackend*> find_attention_backend(std::string_view name, const Device& device);

}  // namespace foretoken
