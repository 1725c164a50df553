#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "device/device.h"
#include "kernels/attention/attention.h"

namespace foretoken {

// What an attention backend can do; printed in the support matrix and used to choose one.
struct AttentionTraits {
  const char* name;
  std::span<const char* const> aliases;  // names other engines use for the same choice
  const char* description;
  bool cpu;
  bool cuda;
  bool batch_invariant;
  bool in_graphs = true;                      // false: its ops cannot be captured
  const char* device_needs = "nothing more";  // beside a device of these types, to read
  const char* model_needs = "every model";    // what `serves` asks for, to read
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
  virtual bool runs_on(const Device& device) const;
  // Whether it has anything for such a model that no other backend has.
  virtual bool serves(const AttentionDemand&) const { return true; }
  // Floats of scratch that `run` wants in AttentionArgs::workspace for up to max_rows rows.
  virtual int64_t workspace_floats(const Device& device, int32_t max_rows, int32_t num_heads,
                                   int32_t head_dim) const = 0;
  // Enqueues attention for the live rows.
  virtual void run(Queue& queue, const AttentionArgs& args) const = 0;
};

// All backends, best first.
std::span<const AttentionBackend* const> attention_backends();

// Whether it is the backend's name or alias, in any case.
bool is_attention_backend(const AttentionBackend& backend, std::string_view name);

// The backend with this name or alias, or with "auto" the first that is batch-invariant and runs on
// `device`. Unsupported, with what is missing or the list of what exists, otherwise.
Result<const AttentionBackend*> find_attention_backend(std::string_view name, const Device& device);

}  // namespace foretoken
