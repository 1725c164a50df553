#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <span>
#include <thread>
#include <vector>

#include "gguf/blocks/block_codes.h"
#include "kernels/gemm/pack_rows.h"
#include "kernels/rows/fill_random.h"
#include "model/files/forms/quantized_tensor.h"
#include "model/weights/random_rows.h"
#include "model/weights/weight_loader.h"

namespace foretoken {
namespace {

struct RandomRow {
  const RowRun* run;
  uint64_t seed;  // of the matrix
  int64_t row;    // of the matrix
  std::byte* to;
};

void make_row(const RandomRow& row, std::vector<std::byte>& whole) {
  const QuantForm& form = *row.run->form;
  const ColumnRange& cols = row.run->cols;
  whole.resize(static_cast<size_t>(quantized_row_bytes(form, cols.total)));
  const float deviation = 1.0f / std::sqrt(static_cast<float>(cols.total));
  random_quantized_row(form, row.seed, row.row, cols.total, deviation, whole.data());
  cut_quantized_row(form, whole.data(), cols, row.to);
}

// By as many threads as rows are worth.
void make_rows(std::span<const RandomRow> rows) {
  constexpr int64_t kMaxThreads = 32, kRowsOfThread = 16;
  const int64_t count = std::ssize(rows);
  const int64_t cores = std::max<int64_t>(std::thread::hardware_concurrency(), 1);
  const int64_t threads =
      std::clamp<int64_t>(count / kRowsOfThread, 1, std::min(cores, kMaxThreads));
  const auto make_share = [&](int64_t thread) {
    std::vector<std::byte> whole;
    for (int64_t i = count * thread / threads; i < count * (thread + 1) / threads; ++i) {
      make_row(rows[static_cast<size_t>(i)], whole);
    }
  };
  std::vector<std::jthread> others;
  for (int64_t thread = 1; thread < threads; ++thread) others.emplace_back(make_share, thread);
  make_share(0);
}

}  // namespace

// How a recipe, or the type of the layers' matrices, quantises a random matrix.
Result<const QuantForm*> WeightLoader::random_form(const TensorPart& part,
                                                   const ColumnRange& cols) const {
  const std::string& name = part.name;
  if (recipe_ == nullptr && in_layers_ && !part.is_exact && rounding_ == WeightRounding::kFp8) {
    if (device_.keeps_quantized(RoundedTensor::kRows, cols.total, dtype_))
      return &RoundedTensor::kRows;
    return unsupported(device_.name() + " keeps no random weights in FP8 in rows of " +
                       std::to_string(cols.total) + " elements; leave --quantization out");
  }
  if (recipe_ == nullptr) {
    const bool takes_form = layer_form_ != nullptr && in_layers_ && !part.is_exact &&
                            fits_row(*layer_form_, cols.width()) &&
                            device_.keeps_quantized(*layer_form_, cols.total, dtype_);
    return takes_form ? layer_form_ : nullptr;
  }
  const size_t at = name.find(".layers.");
  const int32_t layer = at == std::string::npos ? -1 : std::atoi(name.c_str() + at + 8);
  const bool is_output = name.ends_with("lm_head.weight") || name.ends_with("embed_tokens.weight");
  const int64_t shape[] = {1, cols.total};
  const std::string flag = "--load-format dummy-" + std::string(recipe_->name) + ": ";
  const Result<const BlockType*> type =
      type_of(*recipe_, {name, shape, layer, is_output}, num_layers_);
  if (!type.ok()) {
    return unsupported(flag + "rows of " + std::to_string(cols.total) + " elements, as '" + name +
                       "' has them, are no whole blocks; use " +
                       (cols.total % 32 == 0 ? "dummy-q8_0 or dummy" : "dummy"));
  }
  const QuantForm* form = form_of_blocks(*type.value());
  if (form != nullptr && device_.keeps_quantized(*form, cols.total, dtype_)) return form;
  // The output matrix of a recipe has more bits, which a device may not keep.
  if (is_output) return static_cast<const QuantForm*>(nullptr);
  return unsupported(flag + device_.name() + " does not keep rows of " +
                     std::to_string(cols.total) + " elements, as '" + name +
                     "' has them, quantised so; use dummy");
}

// Made and packed one piece after the other. A rank's columns are those of the whole matrix.
Status WeightLoader::make_random_quantized(std::span<const RowRun> runs, PackRowsArgs pack) {
  int64_t bytes = 0;
  for (const RowRun& run : runs) bytes += run.num_rows * quantized_row_bytes(*run.form, pack.k);
  // Of the thread's last piece as well: fresh pages take longer than what is drawn into them.
  thread_local std::vector<std::byte> rows;
  if (std::ssize(rows) < bytes) rows.resize(static_cast<size_t>(bytes));
  std::vector<RandomRow> places;
  std::byte* to = rows.data();
  for (const RowRun& run : runs) {
    const uint64_t seed = random_weight_seed(std::string(run.name));
    for (int64_t i = 0; i < run.num_rows; ++i) {
      places.push_back({&run, seed, run.first_row + i, to});
      to += quantized_row_bytes(*run.form, run.cols.count);
    }
  }
  make_rows(places);
  FT_ASSIGN_OR_RETURN(pack.rows, scratch_of(bytes));
  Status status;
  stream_->with_queue([&](Queue& queue) {
    queue.copy(scratch_, rows.data(), static_cast<size_t>(bytes));
    pack_rows(queue, pack);
    status = queue.drain();
  });
  return status;
}

// Device memory that what is random is packed from.
Result<void*> WeightLoader::scratch_of(int64_t bytes) {
  if (bytes > scratch_bytes_) {
    FT_ASSIGN_OR_RETURN(scratch_,
                        scratch_arena_.take(static_cast<size_t>(bytes), "random weights"));
    scratch_bytes_ = bytes;
  }
  return scratch_;
}

// Made in device memory and packed from there.
Status WeightLoader::make_random_rows(std::span<const RowRun> runs, PackRowsArgs pack) {
  const int64_t row_bytes = pack.k * static_cast<int64_t>(dtype_size(dtype_));
  FT_ASSIGN_OR_RETURN(pack.rows, scratch_of(pack.num_rows * row_bytes));
  auto* to = static_cast<std::byte*>(scratch_);
  for (const RowRun& run : runs) {
    make_random_columns(run, to);
    to += run.num_rows * row_bytes;
  }
  stream_->with_queue([&](Queue& queue) { pack_rows(queue, pack); });
  return {};
}

// A rank's columns are those of the whole matrix.
void WeightLoader::make_random_columns(const RowRun& run, std::byte* to) {
  const ColumnRange& cols = run.cols;
  const std::string name(run.name);
  if (cols.is_whole()) {
    make_random(name, run.first_row * cols.total, run.num_rows * cols.total, cols.total, to);
    return;
  }
  for (int64_t row = run.first_row; row < run.first_row + run.num_rows; ++row) {
    for (int64_t column = 0; column < cols.count; column += cols.width()) {
      make_random(name, row * cols.total + cols.source_of(column), cols.width(), cols.total, to);
      to += bytes_of(cols.width());
    }
  }
}

// Elements first .. first + count - 1 of a random matrix of `cols` columns.
void WeightLoader::make_random(const std::string& name, int64_t first, int64_t count, int64_t cols,
                               void* to) {
  const float deviation = 1.0f / std::sqrt(static_cast<float>(cols));
  stream_->with_queue([&](Queue& queue) {
    fill_random(queue, {.to = to,
                        .first = first,
                        .count = count,
                        .seed = random_weight_seed(name),
                        .scale = random_weight_scale(deviation),
                        .dtype = dtype_});
  });
}

}  // namespace foretoken
