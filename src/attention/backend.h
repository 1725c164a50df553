#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "device/device.h"
#include "kernels/attention.h"

namespace foretoken {

// What an attention backend can do; printed in the support matrix and used to choose one.
struct AttentionTraits {
  const char* name;
  std::span<const char* const> aliases;  // names other engines use for the same choice
  const char* description;
  bool cpu;
  bool cuda;
  bool batch_invariant;
  bool in_graphs = true;  // false: its ops cannot be captured
};

// Attention over the paged KV cache. Stateless and thread-safe; lives as long as the process.
class AttentionBackend {
 public:
  virtual ~AttentionBackend() = default;
  virtual const AttentionTraits& traits() const = 0;
  // Floats of scratch that `run` wants in AttentionArgs::workspace for up to max_rows rows.
  virtual int64_t workspace_floats(const Device& device, int32_t max_rows, int32_t num_heads,
                                   int32_t head_dim) const = 0;
  // Enqueues attention for the live rows.
  virtual void run(Queue& queue, const AttentionArgs& args) const = 0;
};

// All backends, best first.
std::span<const AttentionBackend* const> attention_backends();

// The backend with this name or alias (any case), or with "auto" the first that runs on `device`.
// Unsupported, with the list of what exists, otherwise.
Result<const AttentionBackend*> find_attention_backend(std::string_view name, DeviceType device);

}  // namespace foretoken
