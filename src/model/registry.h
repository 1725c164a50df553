#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "attention/backend.h"
#include "base/result.h"
#include "device/device.h"
#include "gguf/gguf_recipe.h"
#include "model/config/architecture.h"
#include "model/config/config.h"
#include "model/files/quantization_choice.h"
#include "model/model.h"
#include "model/weights/sharding.h"
#include "model/weights/stages.h"
#include "model/weights/weight_loader.h"

namespace foretoken {

// kAuto: safetensors. kDummy: random weights from a fixed seed, config.json only.
enum class LoadFormat : uint8_t { kAuto, kDummy };

struct LoadOptions {
  ConfigOptions config;
  LoadFormat load_format = LoadFormat::kAuto;
  const GgufRecipe* dummy_recipe =
      nullptr;  // kDummy: how matrices are quantised; null: they are not
  // Longest sequence, which fixes rotary embeddings that depend on the length (rope_table.h). Not
  // positive, as before "auto" is resolved: ModelConfig::max_context.
  int32_t max_model_len = 0;
  int32_t kv_block_size = 1;    // positions of the KV blocks, or a number that divides it
  int32_t max_rows = 0;         // largest max_rows of Model::forward
  int32_t max_logits_rows = 0;  // largest max_rows of Model::logits
  // true: layers with a window live in the full group too and keep what lies behind it (draft
  // models, whose KV shares the target's full block tables).
  bool one_kv_group = false;
  KvFormat kv_format = KvFormat::kPlain;  // of the model's KV groups
  // Of the layers' matrices, without routers; embeddings and the output matrix stay as they are.
  WeightRounding rounding = WeightRounding::kNone;
  // Rows are rounded for products with FP8 matrices of layers (WeightLoader::round_activations).
  // Unsupported where there are none on this device.
  bool round_activations = false;
  bool static_scales = false;                   // by the scales that the files have
  const AttentionBackend* attention = nullptr;  // null: the best for the device
  Sharding sharding = {};                       // the part of the model that this rank loads
  // What the rows of a second lane meet other ranks with (ForwardRows::in_lanes); null: there is
  // one lane. Unsupported where layers share more than the rows of a lane.
  const Sharding* second_lane = nullptr;
  Stages stages = {};  // the layers of it
  // Called on the loading thread now and then with bytes loaded and bytes in all; may be empty.
  std::function<void(int64_t done, int64_t total)> progress;
  const std::atomic<bool>* cancelled = nullptr;  // looked at between pieces of tensors; may be null
};

// Bytes that the weights of a whole model are going to take in the memory of `device`, which keeps
// some quantised; lists of tensors are read, weights are not. `config` is read from the same files.
// Errors as of Checkpoint::open.
Result<int64_t> stored_weight_bytes(const Device& device, const ModelFiles& files,
                                    const ModelConfig& config, const DecoderTraits& traits);

// Reads a model into the memory of `device`, which must outlive it. Blocks until
// done. Aborted when `cancelled` was set; ResourceExhausted when memory is short; otherwise an
// error that names the file, tensor or field at fault.
Result<std::unique_ptr<Model>> load_model(Device& device, const ModelFiles& files,
                                          const LoadOptions& options);

}  // namespace foretoken
