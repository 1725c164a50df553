#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "attention/kv_cache.h"
#include "base/result.h"
#include "device/queue.h"
#include "kernels/attention/attention.h"
#include "kernels/step/move_blocks.h"
#include "kernels/step_types.h"
#include "model/config/config.h"
#include "model/layer/attention/kv_scales.h"
#include "model/layer/layer_state.h"
#include "model/weights/sharding.h"

namespace foretoken {

// Where a model keeps hidden states of its rows for a drafter: of each live token row, at its KV
// slot, the tapped states side by side.
struct TapSink {
  // The residual stream that enters layer i, with kFinalNorm what leaves the final norm, with
  // kStreams all streams that leave the last layer (HyperConfig), side by side, and with kLastLayer
  // the one that leaves it where there is one.
  static constexpr int32_t kFinalNorm = -1;
  static constexpr int32_t kStreams = -2;
  static constexpr int32_t kLastLayer = -3;
  std::vector<int32_t> layers;
  // [num_blocks * block_size, columns of all states] of the model's type; the states of a sink are
  // of one width.
  void* pages = nullptr;
  // Of each state the `part`-th of num_parts equal parts of its columns.
  int32_t part = 0;
  int32_t num_parts = 1;

  // Elements of a state, of which the sink keeps its part.
  static int32_t width_of(const ModelConfig& config, int32_t layer) {
    return config.hidden_size * (layer == kStreams ? config.hyper.count : 1);
  }
  int32_t columns_of(int32_t width) const { return width / num_parts; }
  // Where the part of a first row of states begins.
  const void* part_of(const void* rows, int32_t columns, DType type) const {
    return static_cast<const std::byte*>(rows) +
           static_cast<size_t>(part * columns) * dtype_size(type);
  }
};

// The output matrix, which a draft head may share with its target; in device memory.
struct SharedHead {
  const void* weight = nullptr;  // packed [this rank's part of vocab, hidden]
  Sharding sharding = {};        // that it is cut by
};

// Keys and values of a layer that a drafter attends to: where they lie in the model's caches.
struct LentKv {
  bool windowed_group = false;  // of Model::kv_groups
  int32_t group_index = 0;      // as of LayerPlan
  int32_t window = 0;           // the same
  KvScales scales = {};
};

class LoraPool;

// What adapters have room for on a device.
struct AdapterRoom {
  int32_t num_slots = 0;
  int32_t max_rank = 0;         // of each
  bool has_whole_ends = false;  // each may have an embedding and an output matrix of its own
};

// Whether rows of a forward pass have adapters, and what these change.
enum class AdapterUse : uint8_t {
  kNone,
  kMixers,  // attention's products alone
  kLayers,  // feed-forward parts, too
};

// The rows of a forward pass, as its ops are enqueued for them.
struct ForwardRows {
  int32_t max_rows;  // upper bound of the live rows, of each lane; at most LoadOptions::max_rows
  RunLengths runs = RunLengths::kUnknown;  // as of AttentionArgs
  // Those of the rows' slots are applied; not in two lanes.
  AdapterUse adapters = AdapterUse::kNone;
  // Rows lie in two lanes, which a device may run at the same time (StepTensors, Queue::fork), the
  // second LoadOptions::max_rows rows behind the first; the model has second_lane.
  bool in_lanes = false;
  bool adapts_ends = false;  // adapters also change the embedding or the output matrix
};

// Of one of two lanes, 0 or 1, the second of which begins at lane_offset.
inline StepTensors lane_of(const StepTensors& tensors, int lane, int32_t lane_offset) {
  const int64_t first = int64_t{lane} * lane_offset;
  StepTensors own = tensors;
  own.counts += 1 + lane;
  for (int32_t** rows : {&own.token_ids, &own.positions, &own.row_slot, &own.kv_slot}) {
    *rows += first;
  }
  if (own.window_slot != nullptr) own.window_slot += first;
  return own;
}

// A loaded target or draft model. Its weights and scratch are taken at load time; the functions
// below only enqueue ops and may be captured into a graph. One queue at a time uses a model, since
// consecutive calls share its scratch.
class Model {
 public:
  virtual ~Model() = default;
  // Of the whole model, also where this rank has a part of it.
  virtual const ModelConfig& config() const = 0;
  // The full group, then the windowed one if there is one. A layer's window is its group's.
  virtual std::vector<KvGroupSpec> kv_groups() const = 0;
  // Of this rank.
  virtual int64_t weight_bytes() const = 0;
  // Of the whole model; those of a tied head count once.
  virtual int64_t num_weights() const = 0;
  virtual int64_t scratch_bytes() const = 0;

  // Enqueues the embedding of tensors.token_ids and every layer; keys and values go to `caches` at
  // tensors.kv_slot and tensors.window_slot. Leaves the residual stream of each live row inside the
  // model, for the functions below. A stage runs its layers between what it receives and sends; the
  // functions below are the last one's.
  virtual void forward(Queue& queue, const StepTensors& tensors, const BatchState& batch,
                       const KvCaches& caches, const ForwardRows& rows) = 0;

  // Bytes of device memory that take_states takes; 0: no layer keeps states of sequences.
  virtual int64_t state_bytes(const StateUse& use) const = 0;
  // Takes the states of the layers that keep some, before the first forward; once. Errors name
  // --max-num-seqs.
  virtual Status take_states(const StateUse& use) = 0;
  // Those states, once they are taken, by slot: all that a sequence has there.
  virtual std::vector<BlockPart> state_parts() const = 0;

  // Start-up only, once.
  virtual Status take_adapter_slots(const AdapterRoom& room) = 0;
  // Null: there is no room.
  virtual LoraPool* adapters() const = 0;

  // Enqueues the final norm of the live token rows of the forward before and returns where it
  // leaves them, each at its place in the tensors: rows of hidden_size elements of config().dtype
  // in device memory, valid until the next forward. max_rows: as it was given.
  virtual const void* hidden_states(Queue& queue, const StepTensors& tensors, int32_t max_rows) = 0;

  // Every later forward also keeps hidden states there. Start-up only, before graphs are captured.
  virtual void add_tap(const TapSink& sink) = 0;
  // The layers of all taps, ascending, each once; without the final norm.
  virtual const std::vector<int32_t>& tapped_layers() const = 0;
  // On a stage before the last one, where nobody taps: which hidden states the last one wants.
  // Start-up only, before graphs are captured.
  virtual void pass_on(std::vector<int32_t> layers) = 0;
  // The last stage's.
  virtual SharedHead shared_head() const = 0;
  // The embedding for a drafter: [own ids, hidden], of the model's type or halves. A stage
  // that embeds no tokens itself reads it from the model's files now, once, and weight_bytes grows.
  // Start-up only. Errors as of load_model.
  virtual Result<RowTable> shared_embedding() = 0;

  // The keys and values of the last layer with a window, or without one; none where the model has
  // no such layer, or where it is another stage's.
  virtual std::optional<LentKv> lent_kv(bool windowed) const = 0;

  // Enqueues the final norm of logits rows [row_offset, row_offset + max_rows) of the forward
  // before and returns where it leaves them: [max_rows, hidden_size] of config().dtype, the input
  // of shared_head().weight. Bounds as of `logits`.
  virtual const void* head_input(Queue& queue, const StepTensors& tensors, int32_t row_offset,
                                 int32_t max_rows) = 0;

  // Enqueues the logits of logits rows [row_offset, row_offset + max_rows) of the forward before:
  // out [max_rows, vocab_size] floats in device memory. max_rows is at most
  // LoadOptions::max_logits_rows; more rows take several calls.
  virtual void logits(Queue& queue, const StepTensors& tensors, int32_t row_offset,
                      int32_t max_rows, float* out) = 0;

  // The same of this rank's columns alone, where shared_head() is cut by columns (cuts_columns);
  // returns where it leaves them: [max_rows, this rank's columns] floats, valid until the next such
  // call.
  virtual const float* part_logits(Queue& queue, const StepTensors& tensors, int32_t row_offset,
                                   int32_t max_rows) = 0;
};

}  // namespace foretoken
