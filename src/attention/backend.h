#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "device/attention_families.h"
#include "device/device.h"
#include "kernels/attention/attention.h"

namespace foretoken {

// A type of device that a backend runs on, and the formats of KV entries that it reads there.
struct AttentionPlace {
  DeviceType device;
  std::span<const KvFormat> kv_formats;
};

// What a model asks of attention.
struct AttentionDemand {
  DType dtype = DType::kF32;
  int32_t head_dim = 0;          // of latents: of an entry
  float softcap = 0;             // of scores; 0: none
  bool has_full_layers = false;  // some see all positions
  int32_t value_dim = 0;         // of latents, as of KvLayer; 0: keys and values lie apart
  bool has_slopes = false;       // as of AttentionArgs
  int32_t block_size = 0;        // positions of a block of the KV cache; 0: not asked about
  bool is_sparse = false;        // rows attend to positions that an indexer chooses

  bool is_latent() const { return value_dim > 0; }
};

// What an attention backend can do. compat/compat.h decides by it what goes together, and the
// support matrix is printed from it.
struct AttentionTraits {
  const char* name;
  std::span<const char* const> aliases;  // names other engines use for the same choice
  const char* description;
  AttentionFamily family;
  std::span<const AttentionPlace> places;
  bool is_latent = false;  // it is for models with latent attention, else for the others
  bool batch_invariant = true;
  bool only_by_name = false;                  // never chosen for --batch-invariant off alone
  bool in_graphs = true;                      // false: its ops cannot be captured
  int32_t block_size = 0;                     // of the only blocks that it reads; 0: all
  const char* device_needs = "nothing more";  // beside a device of these types, to read
  const char* model_needs = "";  // what `serves` asks for beside is_latent, to read; "": nothing
  bool (*serves)(const AttentionDemand&) = nullptr;  // null: all

  bool runs_on(DeviceType device) const;
  bool reads(DeviceType device, KvFormat format) const;
};

// Attention over the paged KV cache by one family of kernels. Stateless and thread-safe.
class AttentionBackend {
 public:
  // program: what kFlex computes with, or null; borrowed.
  explicit constexpr AttentionBackend(const AttentionTraits& traits,
                                      const FlexProgram* program = nullptr)
      : traits_(traits), program_(program) {}
  const AttentionTraits& traits() const { return traits_; }
  // Whether it has a program.
  bool has_expressions() const { return program_ != nullptr; }
  // Whether `device` has its kernels: one of its types, and what device_needs says.
  bool runs_on(const Device& device) const;
  // Whether it has anything for such a model that portable families have not.
  bool serves(const AttentionDemand& demand) const;
  // What `serves` asks for, as a sentence has it.
  std::string model_needs() const;
  // Floats of scratch that `run` wants in AttentionArgs::workspace for up to max_rows rows.
  int64_t workspace_floats(const Device& device, int32_t max_rows, int32_t num_heads,
                           int32_t head_dim) const;
  // Enqueues attention for the live rows.
  void run(Queue& queue, const AttentionArgs& args) const;

 private:
  AttentionTraits traits_;
  const FlexProgram* program_;
};

// All backends, best first.
std::span<const AttentionBackend* const> attention_backends();

// The one with this name or alias, in any case; null for "auto" and where there is none.
const AttentionBackend* named_attention(std::string_view name);

// Whether it is the backend's name or alias, in any case.
bool is_attention_backend(const AttentionBackend& backend, std::string_view name);

// The first batch-invariant backend for such a model on devices of the type, and on `opened` if
// that is not null. There always is one.
const AttentionBackend& default_attention(const AttentionDemand& demand, DeviceType type,
                                          const Device* opened);

// Whether there is a backend with this name or alias, or it is "auto". Unsupported, with the list
// of those for devices of the type.
Status check_attention_name(std::string_view name, DeviceType type);

// OK where the backend runs on devices of the type, and on `opened` if that is not null. Otherwise
// Unsupported, with what is missing and the list of what there is.
Status check_attention_place(const AttentionBackend& backend, DeviceType type,
                             const Device* opened);

// The backend with this name or alias, or with "auto" the first that is batch-invariant and runs on
// `device`; its kernels take latents too. Unsupported, with what is missing or the list of what
// exists, otherwise.
Result<const AttentionBackend*> find_attention_backend(std::string_view name, const Device& device);

}  // namespace foretoken
