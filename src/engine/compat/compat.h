#pragma once
#include <optional>
#include <string>

#include "attention/backend.h"
#include "base/result.h"
#include "device/device_traits.h"
#include "draft/registry.h"

namespace foretoken {

// What an engine, or a request to it, is put together from. A part that is left out is not asked
// about. Pointers are borrowed for the call.
struct Combination {
  const DeviceTraits* device = nullptr;
  const Device* opened = nullptr;  // the device itself; null: any of its type
  const AttentionBackend* attention = nullptr;
  const AttentionDemand* model = nullptr;
  std::string kv_cache_dtype = {};  // as --kv-cache-dtype names it; with a device and a dtype
  std::optional<DType> dtype = {};  // of the model
  bool latent = false;              // its KV cache keeps latents (model/config/latent_config.h)
  bool batch_invariant = false;     // --batch-invariant on
  std::string drafter = {};         // a name of draft/registry.h
  std::string architecture = {};    // as config.json names it
  bool is_synthetic = false;        // the rule `synthetic` instead of `coupled`
  bool structured_outputs = false;
  bool logits_processors = false;
  int num_ranks = 1;    // of an engine: tensor and pipeline parallel
  int num_stages = 1;   // of these, pipeline parallel
  int num_engines = 1;  // data parallel
  int num_hosts = 1;
  int num_context_ranks = 1;            // tensor parallel ranks that share the KV of a sequence
  bool expert_parallel = false;         // whole experts are dealt out to ranks
  std::optional<int> num_experts = {};  // of the model's mixture; 0: it has none
  bool two_lanes = false;               // --enable-dbo
  bool only_pieces = false;             // graphs of steps are all in pieces
  bool has_launcher = false;            // mpirun, srun or torchrun started the process
  bool uses_mpi = false;                // --communicator mpi
  bool parts_of_steps = false;          // parts of steps are measured instead of steps
  bool has_profile = false;             // --profile
  bool host_blocks = false;             // --kv-offloading-size
  bool prefix_caching = true;           // --enable-prefix-caching
  bool windowed = false;                // the model has layers with a window of their own blocks
  // "the model" or "a draft model", where its layers keep states of sequences; empty: none does.
  std::string states_of = {};
  bool is_sparse = false;  // an indexer chooses the positions that the model's rows attend to
};

// The one place that decides what goes together: OK, or the sentence that says what contradicts and
// what to change (InvalidArgument where two wishes do, Unsupported where something is not built).
// It asks for traits, never for names.
Status compat(const Combination& c);

}  // namespace foretoken
