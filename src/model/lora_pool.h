#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/arena.h"
#include "device/device.h"
#include "device/queue.h"
#include "kernels/step_types.h"
#include "model/layer/linear.h"
#include "model/layer/lora.h"
#include "model/weights/lora_adapter.h"
#include "model/whole_ends.h"

namespace foretoken {

// Where a matrix that adapters may change stands in a model.
enum class AdaptedPlace : uint8_t {
  kMixer,
  kFeedForward,
  kHead,
  kEmbedding,  // its rows are looked up: [hidden, vocab] as a linear layer, one input at a time
};

// A linear layer that adapters may change, of a rank's part of a model.
struct AdaptedLinear {
  Linear* linear;
  AdaptedPlace place;
  bool joins = false;  // its product may be added to another one, so that it cannot be scaled
};

// An embedding or an output matrix of another stage, as a linear layer.
struct AdaptedElsewhere {
  std::string module;
  int64_t outputs;
  int64_t inputs;
  bool is_table = false;  // the embedding
};

// An adapter as a place of a pool takes it, in pinned memory. Made by any thread; outlives the
// copies that read it.
class LoraImage {
 public:
  LoraImage(Device& device, size_t bytes);
  ~LoraImage();
  LoraImage(const LoraImage&) = delete;
  LoraImage& operator=(const LoraImage&) = delete;

  // It changes feed-forward parts, here or on other stages.
  bool changes_feed_forward() const { return changes_feed_forward_; }
  // It changes the embedding or the output matrix, of whichever stage.
  bool changes_ends() const { return changes_ends_; }
  // Ids that its embedding has; 0: the model's.
  int32_t num_ids() const { return num_ids_; }
  size_t bytes() const { return bytes_; }

 private:
  friend class LoraPool;
  struct Entry {
    size_t part = 0;
    size_t a_offset = 0;
    size_t b_offset = 0;
    float scale = 0;
    int32_t rank = 0;
    std::optional<size_t> factors_offset = {};
  };

  Device& device_;
  std::byte* data_;  // null: memory was short
  size_t bytes_;
  size_t low_rank_bytes_ = 0;  // of these, at the front
  std::vector<Entry> entries_;
  std::vector<WholeCopy> wholes_;  // behind the others
  bool changes_feed_forward_ = false;
  bool changes_ends_ = false;
  int32_t num_ids_ = 0;
};

// Room for adapters on a device, or for a rank's part of them: `num_slots` places of one size, each
// for an adapter of at most `max_rank`.
class LoraPool {
 public:
  struct Limits {
    int32_t num_slots = 0;
    int32_t max_rank = 0;
    int32_t max_rows = 0;                          // of a forward pass
    bool has_all_layers = true;                    // false: other stages have some
    std::vector<AdaptedElsewhere> elsewhere = {};  // what other stages have beside layers
    int32_t added_ids = 0;  // as of WholeEnds::Limits; the last rows of the ends
    // Beginnings of modules that the model has beside its text part, whose adapters are passed
    // over; is_text_part: whatever is no module of a decoder is one.
    std::vector<std::string> other_parts = {};
    bool is_text_part = false;
    WholeEnds::Limits wholes = {};  // matrices of adapters' own
  };
  // Takes the memory and tells the linear layers where their adapters will be; they outlive the
  // pool. ResourceExhausted when memory is short; Unsupported for matrices that have no place in
  // "layers.", where adapters look for them.
  static Result<std::unique_ptr<LoraPool>> create(Device& device,
                                                  const std::vector<AdaptedLinear>& linears,
                                                  DType dtype, const Limits& limits);

  // Unsupported names a module that no adapter can change here, and those that one can;
  // InvalidArgument a matrix of another size. `is_checked`: another stage knows all modules, and
  // those that none of this one's layers have are passed over. Any thread.
  Result<std::unique_ptr<LoraImage>> make_image(const LoraAdapter& adapter,
                                                bool is_checked = false) const;

  // Enqueues the copies that bring an adapter into a place, which no step in flight uses.
  void load(Queue& queue, int32_t slot, const LoraImage& image);

  // Enqueues what finds the rows of a pass that have adapters (SlotParams::adapter), before all
  // others of its ops that use the answer. `feed_forward`: some adapter changes those parts.
  LoraPass begin(Queue& queue, const StepTensors& tensors, const SlotParams* params,
                 int32_t max_rows, bool feed_forward);
  // Enqueues what adapters make of the embedding in the residual [max_rows, hidden] of that pass.
  void add_to_embeddings(const LayerRows& rows, float* residual) const;
  // Enqueues what finds those of logits rows [row_offset, row_offset + max_rows) of the same pass
  // that have adapters, after all ops of its layers and before the head's product; and, behind
  // that, what they make of logits [max_rows, this rank's columns] of x [max_rows, hidden].
  void begin_logits(Queue& queue, const StepTensors& tensors, int32_t row_offset,
                    int32_t max_rows) const;
  void add_to_logits(Queue& queue, const void* x, float* logits, int32_t max_rows) const;

  int64_t device_bytes() const {
    return static_cast<int64_t>(arena_.bytes_taken()) + wholes_.device_bytes();
  }
  DType dtype() const { return dtype_; }
  int32_t max_rank() const { return limits_.max_rank; }

 private:
  // Outputs of a linear layer that have adapters of their own.
  struct Part {
    std::string module;         // from "layers." on, or of an end of the model
    std::vector<int64_t> rows;  // of the module's outputs, in the order of the matrix
    int64_t outputs;            // of the whole module
    ColumnRange inputs;
    PaddedHeads columns;   // of the inputs
    TurningHeads turning;  // of them, too
    AdaptedPlace place;
    bool joins = false;  // rows cannot be scaled by themselves, or lie in another order
    float scale = 1;     // of what they add
    std::vector<float> row_factors = {};  // of the rows, beside it

    int64_t inputs_of_file() const { return columns.of_file(inputs.total); }
    int64_t num_rows() const { return static_cast<int64_t>(rows.size()); }
    bool is_end() const {
      return place == AdaptedPlace::kHead || place == AdaptedPlace::kEmbedding;
    }
  };

  LoraPool(Device& device, DType dtype, const Limits& limits)
      : device_(device),
        dtype_(dtype),
        limits_(limits),
        arena_(device, MemoryKind::kDevice),
        pinned_(device, MemoryKind::kPinned),
        wholes_(device, dtype, limits.wholes) {}
  void add_linear(const AdaptedLinear& adapted);
  Status take();
  std::vector<WholeEnd> whole_ends() const;
  LoraReplaceArgs replace_args(float* y, int32_t max_rows) const;
  Result<std::vector<const LoraLinear*>> match(const LoraAdapter& adapter, bool is_checked) const;
  Status report_gap(const LoraAdapter& adapter) const;
  Result<std::vector<LoraImage::Entry>> entries_of(const std::vector<const LoraLinear*>& found,
                                                   size_t* bytes) const;
  std::string module_names() const;
  size_t part_bytes(const Part& part, int32_t rank) const;
  bool has_kind(const std::string& kind, bool feed_forward) const;
  const AdaptedElsewhere* end_elsewhere(const std::string& name) const;
  bool is_elsewhere(const std::string& name) const;
  bool is_of_other_part(const std::string& module) const;
  Status check_end(const LoraAdapter& adapter, const LoraLinear& linear,
                   const AdaptedElsewhere& end) const;
  void fill_a(const Part& part, const LoraLinear& linear, int32_t rank, std::byte* a) const;
  void fill_b(const Part& part, const LoraLinear& linear, std::byte* b) const;
  static void fill_factors(const Part& part, const LoraLinear& linear, std::byte* factors);
  static Status check_factors(const Part& part, const LoraLinear& linear);
  LoraPass pass(bool feed_forward) const;

  Device& device_;
  const DType dtype_;
  const Limits limits_;
  Arena arena_;
  Arena pinned_;
  WholeEnds wholes_;
  std::vector<Part> parts_;
  std::vector<size_t> first_parts_;  // by linear layer
  int32_t widest_gates_ = 0;
  size_t max_sums_ = 1;  // of t, by rank
  size_t slot_bytes_ = 0;
  std::byte* slots_ = nullptr;          // [num_slots, slot_bytes]
  LoraMatrix* table_ = nullptr;         // [num_slots, parts]
  LoraMatrix* table_pinned_ = nullptr;  // the same, as it was last copied
  LoraRows rows_;
  float* t_ = nullptr;
  float* raw_gates_ = nullptr;
  // The ends of the model; null: it has none here.
  const Linear* embedding_ = nullptr;
  const Linear* head_ = nullptr;
  int32_t num_ids_ = 0;                 // of the embedding
  const SlotParams* params_ = nullptr;  // of the last pass
};

}  // namespace foretoken
