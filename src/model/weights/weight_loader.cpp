#include "model/weights/weight_loader.h"

#include <algorithm>
#include <cstring>
#include <ranges>

#include "base/check.h"
#include "kernels/gemm/pack_rows.h"
#include "model/files/forms/convert.h"
#include "model/files/forms/quantized_tensor.h"

namespace foretoken {
namespace {

constexpr int64_t kScratchBytes = int64_t{32} << 20;  // that random rows are made in

Status out_of_memory(const Device& device, const std::string& what, int64_t bytes) {
  return resource_exhausted("not enough memory on " + device.name() + " for " + what + ": " +
                            std::to_string(bytes >> 20) + " MiB wanted, " +
                            std::to_string(device.free_memory() >> 20) +
                            " MiB free; use a smaller model or --dtype bfloat16");
}

std::string shape_text(std::span<const int64_t> shape) {
  TensorView view;
  view.shape.assign(shape.begin(), shape.end());
  return view.shape_text();
}

}  // namespace

WeightLoader::WeightLoader(Device& device, const Checkpoint* checkpoint, DType dtype,
                           int64_t total_bytes, Progress progress,
                           const std::atomic<bool>* cancelled)
    : device_(device),
      checkpoint_(checkpoint),
      dtype_(dtype),
      total_bytes_(total_bytes),
      progress_(std::move(progress)),
      cancelled_(cancelled),
      scratch_arena_(device, MemoryKind::kDevice),
      upload_arena_(std::make_unique<Arena>(device, MemoryKind::kPinned)) {}

Result<std::unique_ptr<WeightLoader>> WeightLoader::create(Device& device,
                                                           const Checkpoint* checkpoint,
                                                           DType dtype, int64_t total_bytes,
                                                           Progress progress,
                                                           const std::atomic<bool>* cancelled) {
  if (total_bytes > device.free_memory()) {
    return out_of_memory(device, "the weights", total_bytes);
  }
  std::unique_ptr<WeightLoader> loader(
      new WeightLoader(device, checkpoint, dtype, total_bytes, std::move(progress), cancelled));
  FT_ASSIGN_OR_RETURN(loader->queue_, device.make_queue());
  loader->stream_ = std::make_unique<WeightStream>(device, *loader->queue_,
                                                   weight_stream_config(total_bytes), cancelled);
  return loader;
}

Status WeightLoader::check_cancelled(const std::string& name) const {
  if (cancelled_ == nullptr || !cancelled_->load(std::memory_order_relaxed)) return {};
  return aborted("loading was cancelled before tensor '" + name + "'");
}

namespace {

// Extents of 1 may be missing or be more: numbers have no shape, rows are matrices.
bool has_wanted_shape(std::span<const int64_t> own, std::span<const int64_t> wanted) {
  const auto longer = std::views::filter([](int64_t extent) { return extent != 1; });
  return std::ranges::equal(own | longer, wanted | longer);
}

}  // namespace

// The tensor, which now counts as used.
Result<const TensorView*> WeightLoader::find(const std::string& name,
                                             std::span<const int64_t> shape) {
  FT_ASSIGN_OR_RETURN(const TensorView* tensor, checkpoint_->find(name));
  if (!has_wanted_shape(tensor->shape, shape)) {
    return invalid_argument(tensor->file + ": tensor '" + tensor->name + "' has shape " +
                            tensor->shape_text() + ", but " + checkpoint_->config_name() +
                            " asks for " + shape_text(shape) +
                            "; weights and configuration must be of the same model");
  }
  used_.insert(name);
  return tensor;
}

// Null for random weights. Unsupported when its elements are no numbers that weights can have.
Result<const TensorView*> WeightLoader::find_weights(const std::string& name,
                                                     std::span<const int64_t> shape) {
  FT_RETURN_IF_ERROR(check_cancelled(name));
  if (checkpoint_ == nullptr) return static_cast<const TensorView*>(nullptr);
  FT_ASSIGN_OR_RETURN(const TensorView* tensor, find(name, shape));
  FT_RETURN_IF_ERROR(check_convertible(*tensor));
  return tensor;
}

void WeightLoader::count_tensor(int64_t num_bytes) {
  bytes_ += num_bytes;
  if (checkpoint_ != nullptr) bytes_streamed_ += num_bytes;
  report_progress();
}

void WeightLoader::report_progress() {
  const int64_t done = bytes_ - (bytes_streamed_ - stream_->bytes_done());
  if (!progress_ || done <= reported_) return;
  reported_ = done;
  progress_(done, total_bytes_);
}

Status WeightLoader::finish() {
  FT_RETURN_IF_ERROR(stream_->finish([this] { report_progress(); }));
  upload_arena_ = std::make_unique<Arena>(device_, MemoryKind::kPinned);
  report_progress();
  return {};
}

namespace {

// That a part's tensor must have, with so many columns in the file.
std::vector<int64_t> shape_of(const TensorPart& part, int64_t cols) {
  if (part.stacked == 0) return {part.rows, cols};
  return {part.stacked, part.rows / part.stacked, cols};
}

// Tools that quantise make [outputs, inputs] of matrices that lie transposed in plain files.
bool is_turned_back(const Checkpoint* checkpoint, const TensorPart& part, int64_t cols) {
  if (checkpoint == nullptr) return false;
  const auto found = checkpoint->tensors().find(part.name);
  if (found == checkpoint->tensors().end()) return false;
  const TensorView& tensor = *found->second;
  const bool has_codes =
      tensor.packed != nullptr || tensor.scaled != nullptr || tensor.bnb != nullptr;
  return has_codes && tensor.shape == shape_of(part, cols);
}

}  // namespace

// Random ones are rows of a tensor that has each of its matrices as it is wanted.
Result<RowRun> WeightLoader::find_turned_run(const TensorPart& part, const ColumnRange& cols) {
  const Transposed& turned = part.transposed;
  FT_CHECK(cols.total == part.wanted_of_file() && cols.pieces == 1);
  FT_ASSIGN_OR_RETURN(const TensorView* tensor, find_matrix(part, shape_of(part, turned.total)));
  if (tensor != nullptr) {
    const ColumnRange of_file = {part.rows, part.first_row + cols.first, cols.count};
    tensor = in_halves(tensor, part.alternating, true);
    return RowRun{part.name, tensor, turned.first, turned.count, of_file, nullptr, turned.total};
  }
  const int64_t first = part.first_row / cols.total * turned.total + turned.first;
  const QuantForm* form = nullptr;
  if (!part.widened) {
    FT_ASSIGN_OR_RETURN(form, random_form(part, cols));
  }
  return RowRun{part.name, nullptr, first, turned.count, cols, form};
}

Result<RowRun> WeightLoader::find_run(const TensorPart& part, const ColumnRange& cols) {
  if (part.transposed.total > 0) return find_turned_run(part, cols);
  if (transposed_ && !is_turned_back(checkpoint_, part, cols.total)) {
    FT_ASSIGN_OR_RETURN(RowRun run, find_turned_run(part.of_columns(cols.total), cols));
    run.name = part.name;
    return run;
  }
  FT_ASSIGN_OR_RETURN(const TensorView* tensor, find_matrix(part, shape_of(part, cols.total)));
  tensor = in_halves(tensor, part.alternating, false);
  RowRun run{part.name, tensor, part.first_row, part.wanted(), cols, nullptr};
  if (part.widened) return run;
  if (tensor != nullptr) {
    FT_ASSIGN_OR_RETURN(run.form, kept_form(part.name, *tensor, cols.total));
  } else {
    FT_ASSIGN_OR_RETURN(run.form, random_form(part, cols));
  }
  return run;
}

Status WeightLoader::add_runs(const TensorPart& part, const ColumnRange& cols,
                              std::vector<RowRun>* runs) {
  FT_ASSIGN_OR_RETURN(const RowRun whole, find_run(part, cols));
  if (part.paired.are_as_wanted()) {
    runs->push_back(whole);
    return {};
  }
  for (int64_t row = whole.first_row; row < whole.first_row + whole.num_rows; ++row) {
    RowRun& one = runs->emplace_back(whole);
    one.first_row = part.paired.source_of(row);
    one.num_rows = 1;
  }
  return {};
}

namespace {

// Rows of which two alternate in memory: units, or all where gates and ups do.
int64_t alternating_rows(std::span<const RowRun> runs, WeightOrder order, int64_t unit_rows) {
  if (order == WeightOrder::kPlain || unit_rows > 0) return unit_rows;
  int64_t rows = 0;
  for (const RowRun& run : runs) rows += run.num_rows;
  return rows;
}

}  // namespace

Result<PackedWeight> WeightLoader::matrix(std::span<const TensorPart> parts,
                                          const ColumnRange& cols, WeightOrder order,
                                          int64_t unit_rows) {
  std::vector<RowRun> runs;
  for (const TensorPart& part : parts) FT_RETURN_IF_ERROR(add_runs(part, cols, &runs));
  FT_RETURN_IF_ERROR(check_cut(runs, alternating_rows(runs, order, unit_rows)));
  return load_rows(runs, cols.count, order, unit_rows);
}

Result<PackedWeight> WeightLoader::matrix_rows(const TensorPart& part, int64_t cols,
                                               std::span<const int32_t> ids) {
  FT_ASSIGN_OR_RETURN(const RowRun whole, find_run(part, {cols, 0, cols}));
  std::vector<RowRun> runs;
  for (const int32_t id : ids) {
    FT_CHECK(id >= 0 && id < part.rows);
    const bool follows = !runs.empty() && runs.back().first_row + runs.back().num_rows == id;
    if (follows) {
      ++runs.back().num_rows;
    } else {
      RowRun& run = runs.emplace_back(whole);
      run.first_row = id;
      run.num_rows = 1;
    }
  }
  return load_rows(runs, cols, WeightOrder::kPlain);
}

namespace {

std::vector<QuantizedPart> parts_of(std::span<const RowRun> runs, bool rounded = false) {
  std::vector<QuantizedPart> parts;
  for (const RowRun& run : runs) {
    parts.push_back({*run.form, run.num_rows});
    parts.back().form.rounds_rows = rounded;
  }
  return parts;
}

}  // namespace

// x is rounded for all rows of a matrix or for none. What the device keeps in FP8, but not
// together, is widened, and then takes x as it is.
bool WeightLoader::takes_rounded(std::span<const RowRun> runs, int64_t cols, bool quantized) const {
  if (!rounds_activations_ || !in_layers_) return false;
  return std::all_of(runs.begin(), runs.end(), [&](const RowRun& run) {
    const QuantForm* form = run.tensor != nullptr ? quantized_form(*run.tensor) : run.form;
    if (form == nullptr || run.turned_from > 0 || !takes_rounded_rows(*form)) return false;
    if (!quantized && device_.keeps_quantized(*form, cols, dtype_)) return false;
    QuantForm rounding = *form;
    rounding.rounds_rows = true;
    return device_.multiplies_rounded(rounding, cols, dtype_);
  });
}

// A matrix has one type of x, so either all its rows are quantised or none, and halves, whose x is
// not rounded, stand alone.
bool WeightLoader::keeps_quantized(std::span<const RowRun> runs, int64_t cols,
                                   int64_t unit_rows) const {
  const auto is_half = [](const RowRun& run) { return run.form->scale == GroupScale::kNone; };
  const bool each = std::all_of(runs.begin(), runs.end(), [&](const RowRun& run) {
    return run.form != nullptr && device_.keeps_quantized(*run.form, cols, dtype_) &&
           is_half(run) == is_half(runs[0]);
  });
  return each && device_.keeps_together(parts_of(runs), unit_rows);
}

int64_t WeightLoader::bytes_of_rows(std::span<const RowRun> runs, int64_t cols,
                                    bool quantized) const {
  int64_t bytes = 0;
  for (const RowRun& run : runs) {
    bytes += run.num_rows * (quantized ? packed_row_bytes(*run.form, cols) : bytes_of(cols));
  }
  return bytes;
}

// Completes `pack`, of which n, k and the order are known. Null: memory is short.
void* WeightLoader::make_weight(std::span<const RowRun> runs, bool quantized, bool rounded,
                                int64_t unit_rows, PackRowsArgs& pack) {
  if (!quantized) {
    pack.slice_rows = device_.weight_slice_rows(pack.n, pack.k, dtype_, pack.order, unit_rows);
    return device_.make_weight(pack.n, pack.k, dtype_, pack.order, unit_rows);
  }
  const QuantizedWeight made =
      device_.make_quantized_weight(parts_of(runs, rounded), pack.k, dtype_, pack.order, unit_rows);
  pack.slice_rows = made.slice_rows;
  return made.handle;
}

// Each row of a turned tensor gives a piece as many elements as the piece has rows: those of larger
// pieces are whole pages of the file, which is then gone through less often.
int64_t WeightLoader::pieces_of(std::span<const RowRun> runs) {
  constexpr int64_t kTurnedPieces = 8;
  const auto is_turned = [](const RowRun& run) { return run.turned_from > 0; };
  return std::any_of(runs.begin(), runs.end(), is_turned) ? kTurnedPieces : 1;
}

Result<PackedWeight> WeightLoader::load_rows(std::span<const RowRun> runs, int64_t cols,
                                             WeightOrder order, int64_t unit_rows) {
  PackRowsArgs pack;
  const RowRuns all(runs);
  pack.n = all.num_rows();
  pack.k = cols;
  pack.dtype = dtype_;
  pack.order = order;
  const bool quantized = keeps_quantized(runs, cols, alternating_rows(runs, order, unit_rows));
  const bool rounded = takes_rounded(runs, cols, quantized);
  if (!quantized) note_widened(runs);
  const int64_t bytes = bytes_of_rows(runs, cols, quantized);
  pack.weight = make_weight(runs, quantized, rounded, unit_rows, pack);
  if (pack.weight == nullptr) {
    stream_->stop();
    return out_of_memory(device_, "tensor '" + std::string(runs[0].name) + "'", bytes);
  }
  PackedWeight weight(device_, pack.weight);
  if (rounded) FT_RETURN_IF_ERROR(note_rounded(runs, cols, weight));
  const std::vector<RowRun> in_order = in_packing_order(all, pack);
  const RowRuns ordered(in_order);
  const bool is_read = runs[0].tensor != nullptr;
  const int64_t room = is_read ? stream_->piece_bytes() * pieces_of(runs) : kScratchBytes;
  const int64_t most =
      std::max<int64_t>(room / (pack.slice_rows * bytes_of(cols)), 1) * pack.slice_rows;
  for (pack.first_row = 0; pack.first_row < pack.n; pack.first_row += most) {
    pack.num_rows = std::min(most, pack.n - pack.first_row);
    const auto piece = ordered.between(pack.first_row, pack.first_row + pack.num_rows);
    const Status status = is_read     ? stream_rows(piece, pack, quantized)
                          : quantized ? make_random_quantized(piece, pack)
                                      : make_random_rows(piece, pack);
    if (status.ok()) continue;
    stream_->stop();  // nothing may go on filling a weight that is given up
    return status;
  }
  count_tensor(bytes);
  return weight;
}

std::vector<RowRun> WeightLoader::in_packing_order(const RowRuns& runs, const PackRowsArgs& pack) {
  if (pack.order == WeightOrder::kPlain) return runs.between(0, pack.n);
  std::vector<RowRun> ordered;
  const int64_t side = pack.n / 2;
  const int64_t half = pack.slice_rows / 2;
  for (int64_t first = 0; first < side; first += half) {
    for (const int64_t begin : {first, side + first}) {
      const auto found = runs.between(begin, begin + std::min(half, side - first));
      ordered.insert(ordered.end(), found.begin(), found.end());
    }
  }
  return ordered;
}

Status WeightLoader::stream_rows(std::span<const RowRun> runs, const PackRowsArgs& pack,
                                 bool quantized) {
  WeightPiece piece;
  piece.dtype = dtype_;
  piece.pack = pack;
  piece.keeps_quantized = quantized;
  piece.counted_bytes = bytes_of_rows(runs, pack.k, quantized);
  for (const RowRun& run : runs) {
    const ColumnRange& cols = run.cols;
    TensorRun& out = piece.runs.emplace_back();
    if (run.turned_from > 0) {
      out = {run.tensor,
             cols.first * run.turned_from + run.first_row,
             run.num_rows * cols.count,
             cols.count,
             run.turned_from,
             true};
      continue;
    }
    out = {run.tensor, run.first_row * cols.total + cols.first, run.num_rows * cols.count};
    if (cols.is_whole()) continue;
    out.row_elements = cols.count;
    out.stride = cols.total;
    out.pieces = cols.pieces;
    out.apart = cols.apart;
  }
  return stream_->add(std::move(piece));
}

Result<std::vector<int64_t>> WeightLoader::integers(const std::string& name,
                                                    std::span<const int64_t> shape) {
  if (checkpoint_ == nullptr) return std::vector<int64_t>{};
  FT_ASSIGN_OR_RETURN(const TensorView* tensor, find(name, shape));
  return read_integers(*tensor);
}

Result<float> WeightLoader::number(const std::string& name) {
  const int64_t one = 1;
  FT_ASSIGN_OR_RETURN(const TensorView* tensor, find_weights(name, {&one, 1}));
  if (tensor == nullptr) return 1.0f;
  FT_ASSIGN_OR_RETURN(const std::vector<float> values, numbers(name));
  return values.front();
}

Result<std::vector<float>> WeightLoader::numbers(const std::string& name) {
  FT_ASSIGN_OR_RETURN(const TensorView* tensor, checkpoint_->find(name));
  FT_RETURN_IF_ERROR(check_convertible(*tensor));
  std::vector<float> values(static_cast<size_t>(tensor->num_elements()));
  FT_RETURN_IF_ERROR(convert_tensor(*tensor, DType::kF32, values.data()));
  used_.insert(name);
  return values;
}

Result<const float*> WeightLoader::vector(Arena& arena, std::span<const TensorPart> parts,
                                          float dummy_value, float offset) {
  WeightPiece piece;
  piece.dtype = DType::kF32;
  piece.offset = offset;
  int64_t count = 0;
  for (const TensorPart& part : parts) {
    std::vector<int64_t> shape = {part.rows};
    if (part.row_size > 0) shape = {part.rows / part.row_size, part.row_size};
    if (part.stacked > 0) shape.insert(shape.begin(), {part.stacked});
    if (part.stacked > 0) shape[1] /= part.stacked;
    FT_ASSIGN_OR_RETURN(const TensorView* tensor, find_weights(part.name, shape));
    tensor = in_halves(tensor, part.alternating, true);
    if (tensor != nullptr && tensor->is_whole_norm) piece.offset = 0;
    if (part.paired.are_as_wanted()) {
      piece.runs.push_back({tensor, part.first_row, part.wanted()});
    } else {
      for (int64_t i = part.first_row; i < part.first_row + part.wanted(); ++i) {
        piece.runs.push_back({tensor, part.paired.source_of(i), 1});
      }
    }
    count += part.wanted();
  }
  const char* what = "norm weights and biases";
  if (checkpoint_ == nullptr) {
    const std::vector<float> values(static_cast<size_t>(count), dummy_value + offset);
    FT_ASSIGN_OR_RETURN(piece.to,
                        upload(arena, values.data(), values.size() * sizeof(float), what));
  } else {
    const auto size = static_cast<size_t>(count);
    FT_ASSIGN_OR_RETURN(piece.to, arena.take_array<float>(size, what));
    piece.counted_bytes = bytes_of(count);
    FT_RETURN_IF_ERROR(stream_->add(piece));
  }
  count_tensor(bytes_of(count));
  return static_cast<const float*>(piece.to);
}

// The pinned copy stays until finish.
Result<void*> WeightLoader::upload(Arena& arena, const void* data, size_t bytes, const char* what) {
  FT_ASSIGN_OR_RETURN(void* memory, arena.take(bytes, what));
  FT_ASSIGN_OR_RETURN(void* pinned, upload_arena_->take(bytes, "a staging buffer"));
  std::memcpy(pinned, data, bytes);
  stream_->with_queue([&](Queue& queue) { queue.copy(memory, pinned, bytes); });
  return memory;
}

bool WeightLoader::has(const std::string& name) const {
  return checkpoint_ == nullptr || checkpoint_->tensors().contains(name);
}

bool WeightLoader::has_shape(const std::string& name, std::span<const int64_t> shape) const {
  if (checkpoint_ == nullptr) return false;
  const auto found = checkpoint_->tensors().find(name);
  if (found == checkpoint_->tensors().end()) return false;
  const std::vector<int64_t>& own = found->second->shape;
  return std::equal(shape.begin(), shape.end(), own.begin(), own.end());
}

void WeightLoader::ignore_all(const std::string& beginning) {
  if (checkpoint_ == nullptr) return;
  for (const auto& [name, tensor] : checkpoint_->tensors()) {
    if (name.starts_with(beginning)) used_.insert(name);
  }
}

Status WeightLoader::check_all_used(const std::string& architecture) const {
  if (checkpoint_ == nullptr) return {};
  for (const auto& [name, tensor] : checkpoint_->tensors()) {
    if (!used_.contains(name) && !checkpoint_->may_be_left_out(*tensor)) {
      return invalid_argument(tensor->file + ": " + architecture + " has no use for tensor '" +
                              tensor->name + "'; " + checkpoint_->config_name() +
                              " does not describe these weights");
    }
  }
  return {};
}

}  // namespace foretoken
