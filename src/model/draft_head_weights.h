#pragma once
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "attention/backend.h"
#include "base/check.h"
#include "base/result.h"
#include "device/arena.h"
#include "model/draft_head.h"
#include "model/files/checkpoint.h"
#include "model/stack/decoder_layer.h"
#include "model/weights/sharding.h"
#include "model/weights/weight_loader.h"

namespace foretoken {

// A module of a draft head in device memory: its layers and what leads into and out of it. Null: it
// has none.
struct DraftModuleWeights {
  RowTable embedding;           // [vocab, hidden]; its own or the target's
  Linear fc;                    // of [embedding, state], or of each of the state's streams
  Linear embed_fc;              // of the embedding, where that is so
  HyperStreams streams;         // the same; empty: there is one
  std::vector<Norm> tap_norms;  // [target's hidden size] each; of EAGLE-3.1
  Norm all_taps_norm;           // [width of all taps]; of EAGLE-3.1
  Norm embed_norm;              // [hidden]
  Norm state_norm;              // [hidden]
  DecoderLayer layer;
  std::vector<DecoderLayer> deeper;  // behind it; of EAGLE heads of several layers
  const float* mask_taps = nullptr;  // [width of all taps] in place of a mask's; of P-EAGLE
  Norm output_norm;                  // [hidden] before the output matrix
  RowTable markov_embedding;         // [vocab, markov_rank] of DSpark
  Linear gru_input;                  // [3 gru_size, hidden] of Domino
  Linear gru_state;                  // [3 gru_size, gru_size] of Domino
  Linear gru_features;               // [gru_rank, hidden and gru_size] of Domino
  Linear added;                      // [rows of `head`, added_rank] of both
  Linear confidence;                 // [1, hidden and markov_rank] of DSpark
  PackedWeight own_head;
  DraftHead::Head head;  // own_head, one that modules share, or the target's
};

struct DraftHeadWeights {
  std::vector<DraftModuleWeights> modules;
  PackedWeight shared_head;  // rows of the target's output matrix for a reduced vocabulary
};

// What a draft head is loaded from and for.
struct DraftHeadSource {
  Device& device;
  const DraftHeadConfig& config;
  const DraftHeadOptions& options;
  Model& target;
  const Checkpoint* checkpoint = nullptr;  // null: random weights
};

struct LoadedDraftHead {
  DeviceRope rope;
  DraftHeadWeights weights;
  int64_t weight_bytes = 0;
};

// Loads the tensors of `folder` under their published names, with and without a leading "model.",
// or makes random ones where the options say so; `arena` holds what is not packed.
// source.checkpoint is filled in here. Errors name a missing, ill-shaped or unused tensor.
Result<LoadedDraftHead> load_draft_head_folder(Arena& arena, const std::string& folder,
                                               DraftHeadSource source);

// Loads a head of the class Made, of this rank's part of its layers, and takes its scratch; with
// the device's own attention where the options name none.
template <class Made>
Result<std::unique_ptr<Made>> load_head_as(Device& device, const std::string& folder,
                                           const DraftHeadConfig& config, Model& target,
                                           const DraftHeadOptions& options) {
  FT_CHECK(options.max_rows > 0 && options.max_logits_rows > 0);
  try {
    DraftHeadOptions complete = options;
    if (complete.attention == nullptr) {
      FT_ASSIGN_OR_RETURN(complete.attention, find_attention_backend("auto", device));
    }
    FT_ASSIGN_OR_RETURN(
        const ModelConfig part,
        shard_config(config.layer, options.sharding, "the draft head's tensor parallel size of"));
    auto head = std::make_unique<Made>(device, config, part, target, complete);
    FT_RETURN_IF_ERROR(head->load(folder, complete));
    FT_RETURN_IF_ERROR(head->take_scratch());
    return head;
  } catch (const std::bad_alloc&) {
    return resource_exhausted("not enough host memory while loading the draft head " + folder +
                              "; close other programs or use a smaller head");
  }
}

}  // namespace foretoken
