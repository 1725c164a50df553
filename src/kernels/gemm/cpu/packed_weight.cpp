#include "kernels/gemm/cpu/packed_weight.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/bfloat16.h"
#include "base/check.h"
#include "kernels/cpu/op_table.h"
#include "kernels/gemm/cpu/gemm_plain.h"

namespace foretoken::cpu {
namespace {

constexpr int64_t kSmallestSplit = 64 << 10;   // bytes; below it one slice is fastest
constexpr int64_t kBytesPerSlice = 512 << 10;  // fits a core's own cache beside the rows
constexpr int64_t kBytesPerBf16Slice = 256 << 10;
constexpr int64_t kBytesTogether = 1 << 20;             // of slices, beside as many rows
constexpr int64_t kBytesPerQuantizedSlice = 256 << 10;  // shorter ones begin too often
constexpr int64_t kUnitRows = 16;                       // that units are multiples of

// The same for Bf16Matrix: blocks of 64 columns where there are some, whole vectors on each side.
int bf16_slice_width(int64_t n, int64_t k, int sides) {
  const int64_t bytes = 2 * n * k;
  int64_t slices = bytes < kSmallestSplit ? 1 : (bytes / kBytesPerBf16Slice + 2) / 2 * 2;
  slices = std::max(std::min(slices, n / 64), (n + kMaxSliceCols - 1) / kMaxSliceCols);
  const int64_t unit = n / slices >= 64 ? 64 : int64_t{kBf16Lanes} * sides;
  const int64_t width = ((n + slices - 1) / slices + unit - 1) / unit * unit;
  return static_cast<int>(std::min<int64_t>(width, kMaxSliceCols));
}

// Width of the slices: an even number of them of nearly equal size, so that two threads finish
// together, and whole vectors except at the end.
int slice_width(int64_t n, int64_t k, DType dtype, int sides) {
  if (dtype == DType::kBF16 && has_bf16_products(k)) return bf16_slice_width(n, k, sides);
  const int64_t bytes = n * k * static_cast<int64_t>(dtype_size(dtype));
  int64_t slices = bytes < kSmallestSplit || n < 64 ? 1 : (bytes / kBytesPerSlice + 2) / 2 * 2;
  slices = std::max(slices, (n + kMaxSliceCols - 1) / kMaxSliceCols);
  const int64_t unit = n / slices >= 128 ? 64 : 32;
  const int64_t width = ((n + slices - 1) / slices + unit - 1) / unit * unit;
  return static_cast<int>(std::min<int64_t>(width, kMaxSliceCols));
}

// The widest slice of whole vectors that units of `unit` columns can be cut into, at most `width`
// of them; blocks of 64 columns where that is possible.
int width_within_unit(int width, int64_t unit) {
  for (const int step : {64, 32, 16}) {
    for (int cols = width / step * step; cols >= step; cols -= step) {
      if (unit % cols == 0) return cols;
    }
  }
  return 16;
}

// Equal parts of a matrix whose rows a slice has side by side.
int sides_of(WeightOrder order) { return order == WeightOrder::kGateUp ? 2 : 1; }

// Columns that a slice has of each side.
int side_width(int64_t n, int64_t k, DType dtype, int sides, int64_t unit) {
  const int width = slice_width(n, k, dtype, sides) / sides;
  return unit > 0 ? width_within_unit(width, unit) : width;
}

template <class Part>
int64_t total_rows(std::span<const Part> parts) {
  int64_t rows = 0;
  for (const Part& part : parts) rows += part.num_rows;
  return rows;
}

// Columns of a slice of a quantised matrix: even slices in number, of whole blocks on each side.
int quantized_slice_width(std::span<const QuantizedPart> parts, int64_t k, int sides) {
  int64_t bits = 0;
  for (const QuantizedPart& part : parts) bits += part.num_rows * part.form.bits;
  const int64_t n = total_rows(parts);
  const int64_t slices = (bits * k / 8 / kBytesPerQuantizedSlice + 2) / 2 * 2;
  const int64_t unit = int64_t{kQuantCols} * sides;
  const int64_t width = ((n + slices - 1) / slices + unit - 1) / unit * unit;
  return static_cast<int>(std::min<int64_t>(width, kMaxSliceCols));
}

// The forms of the rows [first, first + count), behind what `found` has.
void add_forms(std::span<const QuantizedPart> parts, int64_t first, int64_t count,
               std::vector<QuantizedPart>& found) {
  int64_t part_begin = 0;
  for (const QuantizedPart& part : parts) {
    const int64_t begin = std::max(first, part_begin);
    const int64_t end = std::min(first + count, part_begin + part.num_rows);
    if (begin < end) found.push_back({part.form, end - begin});
    part_begin += part.num_rows;
  }
}

// Rows of the matrix [first, first + count) as one block, gathered from the parts.
void gather_rows(std::span<const WeightPart> parts, int64_t first, int64_t count, size_t row_bytes,
                 std::byte* rows) {
  int64_t part_begin = 0;
  for (const WeightPart& part : parts) {
    const int64_t begin = std::max(first, part_begin);
    const int64_t end = std::min(first + count, part_begin + part.num_rows);
    if (begin < end) {
      std::memcpy(rows + static_cast<size_t>(begin - first) * row_bytes,
                  static_cast<const std::byte*>(part.data) +
                      static_cast<size_t>(begin - part_begin) * row_bytes,
                  static_cast<size_t>(end - begin) * row_bytes);
    }
    part_begin += part.num_rows;
  }
}

float element(const void* data, DType dtype, int64_t index) {
  return dtype == DType::kF32 ? static_cast<const float*>(data)[index]
                              : bf16_to_float(static_cast<const uint16_t*>(data)[index]);
}

// [cols / 16, k, 16] floats, the last group filled up with zeros.
std::vector<float> pack_plain(const void* rows, int cols, int64_t k, DType dtype) {
  const int groups = (cols + kPlainCols - 1) / kPlainCols;
  std::vector<float> packed(static_cast<size_t>(groups * k * kPlainCols));
  for (int64_t col = 0; col < cols; ++col) {
    float* group = packed.data() + col / kPlainCols * k * kPlainCols;
    for (int64_t i = 0; i < k; ++i) {
      group[i * kPlainCols + col % kPlainCols] = element(rows, dtype, col * k + i);
    }
  }
  return packed;
}

}  // namespace

PackedWeight::PackedWeight(int64_t n, int64_t k, DType dtype, WeightOrder order, int64_t unit_rows)
    : n_(n), k_(k), dtype_(dtype), order_(order) {
  FT_CHECK(n > 0 && k > 0 && (dtype == DType::kF32 || dtype == DType::kBF16));
  // Equal parts of the matrix whose rows a slice has side by side.
  const int sides = num_sides();
  FT_CHECK(n % sides == 0);
  FT_CHECK(unit_rows % kUnitRows == 0);
  const int width = side_width(n, k, dtype, sides, unit_rows);
  for (int64_t first = 0; first < n / sides; first += width) {
    const int cols = static_cast<int>(std::min<int64_t>(width, n / sides - first)) * sides;
    slices_.push_back({static_cast<int>(first), cols, nullptr, {}});
  }
  if (dtype == DType::kBF16 && has_bf16_products(k)) {
    take_bf16_memory();
  } else if (onednn_is_batch_invariant(dtype)) {
    take_onednn_memory();
  }
}

void PackedWeight::take_bf16_memory() {
  std::vector<int> widths;
  for (const Slice& slice : slices_) widths.push_back(slice.cols);
  bf16_ = std::make_unique<Bf16Matrix>(widths, k_);
  slices_together_ =
      static_cast<int>(std::clamp<int64_t>(kBytesTogether / slice_row_bytes(0), 1, 4));
}

// One block for all slices, so that it lies on huge pages.
void PackedWeight::take_onednn_memory() {
  size_t bytes = 0;
  for (Slice& slice : slices_) {
    slice.onednn_offset = bytes;
    bytes += onednn_slice_bytes(slice.cols, k_, dtype_);
  }
  onednn_memory_ = PageBlock(bytes);
}

PackedWeight::PackedWeight(std::span<const WeightPart> parts, int64_t k, DType dtype,
                           WeightOrder order, int64_t unit_rows)
    : PackedWeight(total_rows(parts), k, dtype, order, unit_rows) {
  const size_t row_bytes = static_cast<size_t>(k) * dtype_size(dtype);
  for (int i = 0; i < num_slices(); ++i) {
    std::vector<std::byte> rows(static_cast<size_t>(cols(i)) * row_bytes);
    const int side_cols = cols(i) / num_sides();
    for (int side = 0; side < num_sides(); ++side) {
      gather_rows(parts, side * (n_ / num_sides()) + first_col(i), side_cols, row_bytes,
                  rows.data() + static_cast<size_t>(side * side_cols) * row_bytes);
    }
    pack_slice(i, rows.data());
  }
}

PackedWeight::PackedWeight(std::span<const QuantizedPart> parts, int64_t k, DType dtype,
                           WeightOrder order, int64_t unit_rows)
    : n_(total_rows(parts)), k_(k), dtype_(dtype), order_(order) {
  FT_CHECK(n_ > 0 && n_ % num_sides() == 0);
  FT_CHECK(dtype == DType::kF32 || dtype == DType::kBF16);
  const int64_t side = n_ / num_sides();
  FT_CHECK(unit_rows % kUnitRows == 0);
  int width = quantized_slice_width(parts, k, num_sides()) / num_sides();
  if (unit_rows > 0) width = width_within_unit(width, unit_rows);
  std::vector<QuantizedPart> ordered;
  for (int64_t first = 0; first < side; first += width) {
    const int64_t cols = std::min<int64_t>(width, side - first);
    for (int i = 0; i < num_sides(); ++i) add_forms(parts, i * side + first, cols, ordered);
    slices_.push_back({static_cast<int>(first), static_cast<int>(cols) * num_sides(), nullptr, {}});
  }
  take_quantized_memory(ordered, int64_t{width} * num_sides());
  for (const QuantizedPart& part : parts) {
    quantized_bytes_ += part.num_rows * packed_row_bytes(part.form, k);
  }
}

void PackedWeight::take_quantized_memory(std::span<const QuantizedPart> ordered,
                                         int64_t slice_cols) {
  const auto is_half = [](const QuantizedPart& part) {
    return part.form.scale == GroupScale::kNone;
  };
  if (std::none_of(ordered.begin(), ordered.end(), is_half)) {
    quantized_ = std::make_unique<QuantMatrix>(ordered, k_, slice_cols);
    FT_CHECK(quantized_->num_slices() == num_slices());
    return;
  }
  FT_CHECK(dtype_ == DType::kF32 && std::all_of(ordered.begin(), ordered.end(), is_half));
  std::vector<int> widths;
  for (const Slice& slice : slices_) widths.push_back(slice.cols);
  halves_ = std::make_unique<HalfMatrix>(widths, k_);
}

int64_t PackedWeight::slice_row_bytes(int i) const {
  if (quantized_ != nullptr) return quantized_->slice_row_bytes(i);
  if (halves_ != nullptr) return 2 * cols(i) * k_;
  return cols(i) * k_ * static_cast<int64_t>(dtype_size(dtype_));
}

void PackedWeight::pack_slice(int i, const void* rows) {
  if (quantized_ != nullptr) {
    return quantized_->pack_slice(i, static_cast<const std::byte*>(rows));
  }
  if (halves_ != nullptr) return halves_->pack_slice(i, static_cast<const std::byte*>(rows));
  if (bf16_ != nullptr) return bf16_->pack_slice(i, static_cast<const uint16_t*>(rows));
  Slice& slice = slices_[static_cast<size_t>(i)];
  if (onednn_is_batch_invariant(dtype_)) {
    slice.onednn = pack_onednn_slice(rows, slice.cols, k_, dtype_,
                                     onednn_memory_.data() + slice.onednn_offset);
  } else {
    slice.plain = pack_plain(rows, slice.cols, k_, dtype_);
  }
}

void PackedWeight::multiply(int i, const void* x, float* y, int rows, int64_t readable_rows) const {
  if (bf16_ != nullptr) {
    return bf16_->multiply(bf16_kernels().front(), i, static_cast<const uint16_t*>(x), y, rows);
  }
  if (halves_ != nullptr) {
    return halves_->multiply(half_kernels().front(), i, static_cast<const float*>(x), y, rows);
  }
  const Slice& slice = slices_[static_cast<size_t>(i)];
  if (slice.onednn == nullptr) return multiply_plain_slice(slice, x, y, rows);
  const auto* from = static_cast<const std::byte*>(x);
  const size_t row_bytes = static_cast<size_t>(k_) * dtype_size(dtype_);
  while (rows > 0) {
    // Up to the next bucket where that many rows can be read, else a smaller bucket at a time.
    auto bucket = static_cast<int>(std::bit_ceil(static_cast<unsigned>(rows)));
    if (bucket > readable_rows) bucket /= 2;
    slice.onednn->multiply(from, y, bucket);
    from += static_cast<size_t>(bucket) * row_bytes;
    y += int64_t{bucket} * slice.cols;
    rows -= bucket;
    readable_rows -= bucket;
  }
}

void PackedWeight::multiply_plain_slice(const Slice& slice, const void* x, float* y,
                                        int rows) const {
  const auto* from = static_cast<const std::byte*>(x);
  const int64_t row_bytes = k_ * static_cast<int64_t>(dtype_size(dtype_));
  for (int col = 0; col < slice.cols; col += kPlainCols) {
    const float* group = slice.plain.data() + col * k_;
    const int cols = std::min(kPlainCols, slice.cols - col);
    for (int row = 0; row < rows; row += kPlainMaxRows) {
      const int count = std::min(kPlainMaxRows, rows - row);
      float tile[kPlainMaxRows][kPlainCols];
      multiply_plain(from + row * row_bytes, dtype_, group, count, k_, tile);
      for (int r = 0; r < count; ++r) {
        std::copy_n(tile[r], cols, y + int64_t{row + r} * slice.cols + col);
      }
    }
  }
}

void* make_weight(int64_t n, int64_t k, DType dtype, WeightOrder order, int64_t unit_rows) {
  try {
    return new PackedWeight(n, k, dtype, order, unit_rows);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

int64_t weight_slice_rows(int64_t n, int64_t k, DType dtype, WeightOrder order, int64_t unit_rows) {
  const int sides = sides_of(order);
  return int64_t{side_width(n, k, dtype, sides, unit_rows)} * sides;
}

void* pack_weight(std::span<const WeightPart> parts, int64_t k, DType dtype, WeightOrder order,
                  int64_t unit_rows) {
  try {
    return new PackedWeight(parts, k, dtype, order, unit_rows);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

bool keeps_quantized(const QuantForm& form, int64_t k) {
  if (form.scale == GroupScale::kNone) return has_half_products();
  return quant_kind(form) >= 0 && k % kQuantStep == 0 && fits_row(form, k);
}

QuantizedWeight make_quantized_weight(std::span<const QuantizedPart> parts, int64_t k, DType dtype,
                                      WeightOrder order, int64_t unit_rows) {
  try {
    auto weight = std::make_unique<PackedWeight>(parts, k, dtype, order, unit_rows);
    const int64_t slice_rows = weight->cols(0);
    return {weight.release(), slice_rows};
  } catch (const std::bad_alloc&) {
    return {nullptr, 0};
  }
}

int64_t quantized_weight_bytes(const void* weight) {
  return static_cast<const PackedWeight*>(weight)->quantized_bytes();
}

RowTable rows_of_weight(const void* weight) {
  return static_cast<const PackedWeight*>(weight)->rows();
}

void free_weight(void* weight) { delete static_cast<PackedWeight*>(weight); }

}  // namespace foretoken::cpu
