#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "attention/backend.h"
#include "attention/kv_cache.h"
#include "base/result.h"
#include "device/device.h"
#include "kernels/draft/draft_tensors.h"
#include "model/config/config.h"
#include "model/draft_head_config.h"
#include "model/files/quantization_choice.h"
#include "model/model.h"
#include "model/weights/weight_loader.h"

namespace foretoken {

struct DraftHeadOptions {
  int32_t max_model_len = 0;
  int32_t max_rows = 0;         // of any pass
  int32_t max_logits_rows = 0;  // of any pass
  const AttentionBackend* attention = nullptr;
  bool dummy = false;  // random weights, config.json only
  KvFormat kv_format = KvFormat::kPlain;
  WeightRounding rounding = WeightRounding::kNone;  // of matrices of its layers
  // Target ids that the output matrix is cut down to, ascending; empty: all that it has.
  std::vector<int32_t> vocab_ids;
  std::string target_folder;  // for rows of the target's output matrix, with vocab_ids
  Sharding sharding = {};     // of the head's layers and its own output matrix
  ContextRanks states = {};   // that have the columns of Source::are_parts
};

// A loaded head. Its weights and scratch are taken at load time; the functions below only enqueue
// ops and may be captured. One queue at a time.
class DraftHead {
 public:
  virtual ~DraftHead() = default;
  virtual const DraftHeadConfig& config() const = 0;
  virtual int64_t weight_bytes() const = 0;
  virtual int64_t scratch_bytes() const = 0;
  // The layers of module m are m * config().num_layers and what follows; heads as of
  // config().layer.
  virtual KvGroupSpec kv_group() const = 0;

  // Where the states that rows pair with come from.
  struct Source {
    const void* rows = nullptr;  // row tensors.source[r] of it belongs to row r
    DType dtype = DType::kF32;
    // Rows of the target's tap pages, as wide as all taps; otherwise as of states().
    bool tapped = false;
    bool are_parts = false;  // of each state this rank has its part of DraftHeadOptions::states
  };
  // Enqueues module `module` (0-based) for the live rows of `tensors`: entry i is written to its KV
  // layers at KV position i with rotary position i - 1 - module, and sees entries 1 + module .. i.
  virtual void forward(Queue& queue, int32_t module, const DraftTensors& tensors,
                       const BatchState& batch, const KvCache& cache, const Source& source,
                       int32_t max_rows) = 0;
  // Of P-EAGLE: what rows of a pass behind a tapped forward pair with, where row r of that forward
  // lies at r and what masks pair with at mask_source().
  virtual Source block_source() const = 0;
  virtual int32_t mask_source() const = 0;
  // The output of the forward before: [max_rows, config().state_size()] floats, what the next draft
  // pairs with.
  virtual const float* states() const = 0;

  // Enqueues what the output matrix of the forward's module reads for the logits rows of the
  // forward before: [max_rows, hidden] of config().layer.dtype. every_row: logits row i is row i.
  virtual const void* head_input(Queue& queue, const DraftTensors& tensors, int32_t max_rows,
                                 bool every_row) = 0;
  // Of an output matrix whose ids lie in clusters, of which a row looks at a few
  // (kernels/draft/cluster_logits.h), whole on each rank.
  struct Clusters {
    const void* centroids = nullptr;  // packed [count, hidden]: their scores
    const void* table = nullptr;      // [rows, hidden], row-major
    const int32_t* ids = nullptr;     // [count, each], -1: none
    int32_t count = 0;                // 0: there are none
    int32_t each = 0;
    int32_t top = 0;  // that a row looks at
    bool exist() const { return count > 0; }
  };
  // The output matrix of that module: packed [head_rows, hidden], and in device memory the target
  // id of each row, or null where rows are target ids.
  struct Head {
    const void* weight = nullptr;
    const int32_t* id_map = nullptr;
    int32_t rows = 0;        // of the whole matrix
    Sharding sharding = {};  // that the matrix is cut by; `weight` has this rank's rows
    Clusters clusters = {};  // instead of `weight`
  };
  virtual Head head(int32_t module) const = 0;
};

// `target` lends its embedding and, where the head has none, its output matrix; both must outlive
// the head.
Result<std::unique_ptr<DraftHead>> load_draft_head(Device& device, const std::string& folder,
                                                   const DraftHeadConfig& config, Model& target,
                                                   const DraftHeadOptions& options);

// Rows `ids` of a model's output matrix, packed; for reduced vocabularies of any drafter.
Result<PackedWeight> load_head_rows(Device& device, const std::string& folder,
                                    const ModelConfig& config, const std::vector<int32_t>& ids);

}  // namespace foretoken
