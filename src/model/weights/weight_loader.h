#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "device/arena.h"
#include "device/device.h"
#include "gguf/gguf_recipe.h"
#include "model/files/checkpoint.h"
#include "model/files/forms/made_tensor.h"
#include "model/files/forms/rounded_tensor.h"
#include "model/files/quantization_choice.h"
#include "model/weights/row_runs.h"
#include "model/weights/tensor_part.h"
#include "model/weights/weight_stream.h"

namespace foretoken {

// Owns a handle of Device::pack_weight.
class PackedWeight {
 public:
  PackedWeight() = default;
  PackedWeight(Device& device, void* handle) : device_(&device), handle_(handle) {}
  PackedWeight(PackedWeight&& other) noexcept
      : device_(other.device_),
        handle_(std::exchange(other.handle_, nullptr)),
        takes_rounded_(other.takes_rounded_),
        input_scale_(other.input_scale_) {}
  PackedWeight& operator=(PackedWeight&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(handle_, other.handle_);
    std::swap(takes_rounded_, other.takes_rounded_);
    std::swap(input_scale_, other.input_scale_);
    return *this;
  }
  ~PackedWeight() {
    if (handle_ != nullptr) device_->free_weight(handle_);
  }
  const void* get() const { return handle_; }
  // As of Device::rows_of_weight.
  RowTable rows() const {
    return handle_ != nullptr ? device_->rows_of_weight(handle_) : RowTable();
  }
  void* handle() const { return handle_; }
  // Whether x of its products is what round_rows leaves.
  bool takes_rounded() const { return takes_rounded_; }
  // `input_scale`: as RoundRowsArgs::scale.
  void take_rounded(float input_scale) {
    takes_rounded_ = true;
    input_scale_ = input_scale;
  }
  float input_scale() const { return input_scale_; }

 private:
  Device* device_ = nullptr;
  void* handle_ = nullptr;
  bool takes_rounded_ = false;
  float input_scale_ = 0;
};

// Rows that ops look up, and the weight that has them where they do not lie in an arena, which
// lanes share.
struct LookUpTable {
  RowTable rows;
  std::shared_ptr<PackedWeight> weight;
};

// Brings tensors into device memory: from a checkpoint, or random ones (the same for a name and a
// shape on every run and every device). Used by one thread, at start-up. What the functions return
// is filled by `finish`; until then, or until `stop`, the memory must stay. Each function returns
// Aborted once cancelled, ResourceExhausted when memory is short, and otherwise names file and
// tensor; errors of reading a tensor may come from a later call.
class WeightLoader {
 public:
  using Progress = std::function<void(int64_t done, int64_t total)>;

  // checkpoint: null for random weights, otherwise outlives the loader. total_bytes: of all
  // weights as they are to be stored, for progress and for the check that they fit into free
  // memory.
  static Result<std::unique_ptr<WeightLoader>> create(Device& device, const Checkpoint* checkpoint,
                                                      DType dtype, int64_t total_bytes,
                                                      Progress progress,
                                                      const std::atomic<bool>* cancelled);

  // Bytes by which the matrices of a model's checkpoint whose names `counts` are smaller than in
  // `dtype`, because the device keeps them quantised, or rounded as round_layers says.
  static int64_t quantized_saving(const Device& device, const Checkpoint& checkpoint, DType dtype,
                                  WeightRounding rounding,
                                  const std::function<bool(const std::string& name)>& counts);

  // From here on random matrices are quantised as this recipe has them; it stays.
  void quantize_random(const GgufRecipe& recipe, int32_t num_layers) {
    recipe_ = &recipe;
    num_layers_ = num_layers;
  }

  // From here on random matrices of layers have this form where the device keeps rows of their
  // lengths so; null: of `dtype`. It outlives the loader.
  void quantize_random_layers(const QuantForm* form) { layer_form_ = form; }

  // Matrices of layers that the files hold unquantised are to be rounded.
  void round_layers(WeightRounding rounding) { rounding_ = rounding; }

  // Matrices of layers that are FP8 are to be multiplied with rounded rows where the device can
  // (PackedWeight::takes_rounded); `static_scales`: by the largest input_scale that the files have
  // of the matrices that are one product.
  void round_activations(bool static_scales) {
    rounds_activations_ = true;
    has_static_scales_ = static_scales;
  }
  // How many of those there are so far, and the most columns that one has.
  int32_t num_rounded() const { return num_rounded_; }
  int64_t rounded_columns() const { return rounded_columns_; }
  // Rows of so many columns are rounded whatever the weights are.
  void need_rounded(int64_t columns) { rounded_columns_ = std::max(rounded_columns_, columns); }

  // From here on matrices are those of layers, which lie in the file as [columns, rows] or as they
  // are wanted.
  void enter_layers(bool transposed) {
    in_layers_ = true;
    transposed_ = transposed;
  }
  void leave_layers() { in_layers_ = transposed_ = false; }

  // The parts stacked into one matrix [sum of rows, cols], packed for the gemm op: quantised as the
  // file has them where the device keeps all parts so, else of `dtype`.
  Result<PackedWeight> matrix(std::span<const TensorPart> parts, int64_t cols,
                              WeightOrder order = WeightOrder::kPlain) {
    return matrix(parts, ColumnRange{cols, 0, cols}, order);
  }
  // The same of some of the columns. Unsupported where quantised rows cannot be cut there.
  // unit_rows as of Device::make_weight.
  Result<PackedWeight> matrix(std::span<const TensorPart> parts, const ColumnRange& cols,
                              WeightOrder order = WeightOrder::kPlain, int64_t unit_rows = 0);
  // Rows `ids` of a matrix [rows, cols], in that order, packed the same way. Ids lie below `rows`.
  Result<PackedWeight> matrix_rows(const TensorPart& part, int64_t cols,
                                   std::span<const int32_t> ids);
  // The same matrix [rows, cols] of host numbers `times` below each other, with unit_rows = rows.
  Result<PackedWeight> repeated(std::vector<float> matrix, int64_t cols, int64_t times);
  // The parts (vectors) one after the other as floats, plus `offset`; random weights are
  // `dummy_value` here.
  Result<const float*> vector(Arena& arena, std::span<const TensorPart> parts, float dummy_value,
                              float offset = 0);
  // A table [rows, cols] to look rows up in, each by itself, of `dtype` or as looked_up_dtype says:
  // the first rows of a tensor that has `file_rows`, where that is not 0.
  Result<RowTable> table(Arena& arena, const std::string& name, int64_t rows, int64_t cols,
                         int64_t file_rows = 0);
  // The same, but quantised as the file has it where the device looks rows up so.
  Result<LookUpTable> kept_table(Arena& arena, const std::string& name, int64_t rows, int64_t cols,
                                 int64_t file_rows = 0);
  // Whether kept_table leaves a tensor of so many columns quantised, but for one whose scales do
  // not fit into its form (keeps_values).
  static bool keeps_table(const Device& device, const TensorView& tensor, int64_t cols,
                          DType dtype);
  // A row-major matrix [rows, cols] of `dtype`, not packed.
  Result<const void*> plain_table(Arena& arena, const std::string& name, int64_t rows,
                                  int64_t cols);
  // A tensor of one element, in host memory; 1 for random weights.
  Result<float> number(const std::string& name);
  // The elements of a small tensor of any shape, in host memory; not for random weights.
  Result<std::vector<float>> numbers(const std::string& name);
  // A tensor of `count` integers, or of that shape, in host memory; none for random weights.
  Result<std::vector<int64_t>> integers(const std::string& name, int64_t count) {
    return integers(name, {&count, 1});
  }
  Result<std::vector<int64_t>> integers(const std::string& name, std::span<const int64_t> shape);
  // The error that loading a tensor of this shape would begin with; it is not loaded, and counts as
  // used.
  Status expect(const std::string& name, std::span<const int64_t> shape) {
    return find_weights(name, shape).status();
  }
  // Copies host data into new device memory; small ones, since they are pinned until finish.
  Result<void*> upload(Arena& arena, const void* data, size_t bytes, const char* what);

  // Waits until all of that is on the device; the first error. Nothing is in flight afterwards.
  Status finish();
  // Gives up; nothing is in flight afterwards.
  void stop() { stream_->stop(); }
  // Stops the loader at the end of a scope that ends early: declare it behind what the loader
  // fills.
  class Guard {
   public:
    explicit Guard(WeightLoader& loader) : loader_(&loader) {}
    ~Guard() {
      if (loader_ != nullptr) loader_->stop();
    }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    // Instead of stopping: WeightLoader::finish.
    Status finish() { return std::exchange(loader_, nullptr)->finish(); }

   private:
    WeightLoader* loader_;
  };

  // Quantised matrices that the device does not keep so, by their types, and what that takes: "30
  // of IQ2_XS, 1 of MXFP4; 2.0 GiB instead of 0.6". Empty: none.
  std::string widened() const;

  // Names a tensor of the checkpoint that nothing asked for: the model would be wrong without it.
  Status check_all_used(const std::string& architecture) const;
  // Marks a tensor that is known and not needed, or all whose names begin so.
  void ignore(const std::string& name) { used_.insert(name); }
  void ignore_all(const std::string& beginning);
  // And all whose names begin with none of these.
  void ignore_all_but(std::span<const std::string> beginnings);
  // Whether the checkpoint holds a tensor; true for random weights.
  bool has(const std::string& name) const;
  // The same, but false for random weights: a tensor that may be left out is left out there.
  bool has_optional(const std::string& name) const { return checkpoint_ != nullptr && has(name); }

  // What tensors come from; null: weights are random.
  const Checkpoint* checkpoint() const { return checkpoint_; }
  // Whether the checkpoint holds a tensor of that shape; false for random weights.
  bool has_shape(const std::string& name, std::span<const int64_t> shape) const;

  // Of all tensors so far, in `dtype` or as they stay quantised.
  int64_t bytes_loaded() const { return bytes_; }

 private:
  // A matrix that is rounded while it is read.
  struct RoundedMatrix {
    RoundedTensor tensor;
    TensorView view;
  };

  // One that is computed while it is read.
  struct MadeMatrix {
    MadeMatrix(const TensorView& plain, Making making);
    MadeMatrix(const TensorView& plain, Making making, const Padding& padding);
    MadeTensor tensor;
    TensorView view;
  };

  // One whose numbers follow from small tensors.
  struct HostMatrix {
    std::vector<float> values;
    TensorView view;
  };

  struct TableShape {
    int64_t rows;
    int64_t cols;
    DType dtype;
  };

  WeightLoader(Device& device, const Checkpoint* checkpoint, DType dtype, int64_t total_bytes,
               Progress progress, const std::atomic<bool>* cancelled);
  Status check_cancelled(const std::string& name) const;
  Result<const TensorView*> find(const std::string& name, std::span<const int64_t> shape);
  // The tensor as TensorPart::alternating wants it, by rows or by columns.
  const TensorView* in_halves(const TensorView* tensor, int64_t size, bool by_columns);
  Result<const QuantForm*> kept_form(const std::string& name, const TensorView& tensor,
                                     int64_t cols);
  Result<RowRun> find_turned_run(const TensorPart& part, const ColumnRange& cols);
  Result<const TensorView*> find_matrix(const TensorPart& part, std::span<const int64_t> shape);
  Result<const TensorView*> find_weights(const std::string& name, std::span<const int64_t> shape);
  Result<RowRun> find_run(const TensorPart& part, const ColumnRange& cols);
  Status add_runs(const TensorPart& part, const ColumnRange& cols, std::vector<RowRun>* runs);
  Result<const QuantForm*> random_form(const TensorPart& part, const ColumnRange& cols) const;
  static std::vector<RowRun> in_packing_order(const RowRuns& runs, const PackRowsArgs& pack);
  int64_t bytes_of(int64_t num_elements) const {
    return num_elements * static_cast<int64_t>(dtype_size(dtype_));
  }
  void note_widened(std::span<const RowRun> runs);
  bool takes_rounded(std::span<const RowRun> runs, int64_t cols, bool quantized) const;
  Status note_rounded(std::span<const RowRun> runs, int64_t cols, PackedWeight& weight);
  Result<float> input_scale_of_all(std::span<const RowRun> runs) const;
  bool keeps_quantized(std::span<const RowRun> runs, int64_t cols, int64_t unit_rows) const;
  static int64_t pieces_of(std::span<const RowRun> runs);
  int64_t bytes_of_rows(std::span<const RowRun> runs, int64_t cols, bool quantized) const;
  void* make_weight(std::span<const RowRun> runs, bool quantized, bool rounded, int64_t unit_rows,
                    PackRowsArgs& pack);
  Status check_cut(std::span<const RowRun> runs, int64_t unit_rows) const;
  Result<PackedWeight> load_rows(std::span<const RowRun> runs, int64_t cols, WeightOrder order,
                                 int64_t unit_rows = 0);
  Result<void*> read_table(Arena& arena, const std::string& name, const TensorView* tensor,
                           const TableShape& shape);
  Status stream_rows(std::span<const RowRun> runs, const PackRowsArgs& pack, bool quantized);
  Status make_random_rows(std::span<const RowRun> runs, PackRowsArgs pack);
  Status make_random_quantized(std::span<const RowRun> runs, PackRowsArgs pack);
  Result<void*> scratch_of(int64_t bytes);
  void make_random_columns(const RowRun& run, std::byte* to);
  void make_random(const std::string& name, int64_t first, int64_t count, int64_t cols, void* to);
  void count_tensor(int64_t num_bytes);
  void report_progress();

  Device& device_;
  const Checkpoint* checkpoint_;
  DType dtype_;
  int64_t total_bytes_;
  Progress progress_;
  const std::atomic<bool>* cancelled_;
  const GgufRecipe* recipe_ = nullptr;
  const QuantForm* layer_form_ = nullptr;  // of random matrices
  int32_t num_layers_ = 0;
  bool in_layers_ = false;
  bool transposed_ = false;
  WeightRounding rounding_ = WeightRounding::kNone;
  bool rounds_activations_ = false;
  bool has_static_scales_ = false;
  int32_t num_rounded_ = 0;
  int64_t rounded_columns_ = 0;
  std::map<const TensorView*, std::unique_ptr<RoundedMatrix>> rounded_;
  std::map<std::pair<const TensorView*, float>, std::unique_ptr<MadeMatrix>> made_;  // by scale
  std::vector<std::unique_ptr<HostMatrix>> host_matrices_;
  std::set<std::string> used_;
  std::map<std::pair<const TensorView*, bool>, TensorView> in_halves_;
  std::map<std::string, bool> keeps_values_;  // of tensors by name, where that was looked up
  std::map<std::string, std::set<std::string>> widened_;  // names by type
  double widened_from_ = 0;                               // bytes in the files
  int64_t widened_to_ = 0;                                // bytes
  int64_t bytes_ = 0;
  int64_t bytes_streamed_ = 0;
  int64_t reported_ = 0;  // bytes
  std::unique_ptr<Queue> queue_;
  Arena scratch_arena_;
  void* scratch_ = nullptr;
  int64_t scratch_bytes_ = 0;
  std::unique_ptr<Arena> upload_arena_;
  std::unique_ptr<WeightStream> stream_;  // last: it ends before what it uses
};

}  // namespace foretoken
