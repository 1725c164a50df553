#include "kernels/quant/cpu/quant_matrix.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/thread_role.h"
#include "kernels/cpu/thread_scratch.h"

namespace foretoken::cpu {
namespace {

constexpr int64_t kStepsAtOnce = 16;  // of the codes of eight bits: 8 KiB; whole super groups
constexpr size_t kBlocksAtOnce = 64;
constexpr size_t kLineBytes = 64;

// Made by the threads that multiply, not by every one of the process.
struct BlockSums {
  alignas(64) float sums[kMaxQuantTileRows * kQuantCols * kBlocksAtOnce];
};

// A row as base/quantized_rows.h lays it out.
struct RowBytes {
  std::vector<std::byte> bytes;
};

size_t round_up(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

// A byte of the four codes of column `col` in vector `vector` of a step.
size_t code_place(int vector, int col, int i) {
  return static_cast<size_t>(64 * vector + 4 * col + i);
}

// The 32 codes of a column at `step`.
void pack_step(int bits, const std::byte* codes, int col, std::byte* step) {
  const bool by_two = bits < 4;
  std::byte* upper = step + (by_two ? 128 : 256);
  for (int i = 0; i < kQuantStep; ++i) {
    const int vector = i / 4;
    const std::byte code = codes[i];
    if (bits == 8) {
      step[code_place(vector, col, i % 4)] = code;
      continue;
    }
    if (by_two) {
      step[code_place(vector / 4, col, i % 4)] |= (code & std::byte{3}) << (vector % 4 * 2);
    } else {
      step[code_place(vector % 4, col, i % 4)] |= (code & std::byte{15}) << (vector / 4 * 4);
    }
    const std::byte rest = code >> (by_two ? 2 : 4);
    if (bits == 6) upper[code_place(vector / 4, col, i % 4)] |= rest << (vector % 4 * 2);
    if (bits == 3 || bits == 5) upper[code_place(0, col, i % 4)] |= rest << vector;
  }
}

// What pack_step has put there.
void unpack_step(int bits, const std::byte* step, int col, std::byte* codes) {
  const bool by_two = bits < 4;
  const std::byte* upper = step + (by_two ? 128 : 256);
  for (int i = 0; i < kQuantStep; ++i) {
    const int vector = i / 4;
    if (bits == 8) {
      codes[i] = step[code_place(vector, col, i % 4)];
      continue;
    }
    const int low_bits = by_two ? 2 : 4;
    codes[i] = by_two
                   ? step[code_place(vector / 4, col, i % 4)] >> (vector % 4 * 2) & std::byte{3}
                   : step[code_place(vector % 4, col, i % 4)] >> (vector / 4 * 4) & std::byte{15};
    if (bits == 6) {
      const std::byte of_four = upper[code_place(vector / 4, col, i % 4)];
      codes[i] |= (of_four >> (vector % 4 * 2) & std::byte{3}) << low_bits;
    }
    if (bits != 3 && bits != 5) continue;
    codes[i] |= (upper[code_place(0, col, i % 4)] >> vector & std::byte{1}) << low_bits;
  }
}

// Calls visit(byte of a row of k, byte of a list for column 0, bytes) for each scale of a column,
// in the order of kernels/quant/cpu/quant_kernels.h.
template <class Visit>
void for_each_scale(const QuantForm& form, int64_t k, const Visit& visit) {
  const int64_t halves = k, bytes = halves + 2 * quantized_row_halves(form, k);
  const int64_t groups = k / form.group, supers = k / kSuperGroup;
  int64_t to = 0;
  const auto add = [&](int64_t from, int64_t size) {
    visit(from, to, static_cast<size_t>(size));
    to += size * kQuantCols;
  };
  const bool is_super = form.scale == GroupScale::kSuper;
  if (is_super || form.scale == GroupScale::kSuperSigned) {
    const int64_t groups_of_super = kSuperGroup / form.group;
    for (int64_t i = 0; i < supers; ++i) {
      add(halves + 2 * i, 2);
      if (is_super) add(halves + 2 * (supers + i), 2);
      for (int64_t g = i * groups_of_super; g < (i + 1) * groups_of_super; ++g) {
        add(bytes + g, 1);
        if (is_super) add(bytes + groups + g, 1);
      }
    }
    return;
  }
  for (int64_t g = 0; g < groups; ++g) {
    add(halves + 2 * g, 2);
    if (form.scale == GroupScale::kHalfAndMinimum) add(halves + 2 * (groups + g), 2);
    if (form.scale == GroupScale::kHalfAndZero) add(bytes + g, 1);
  }
}

// Neighbours of one form as one part.
std::vector<QuantizedPart> joined(std::span<const QuantizedPart> parts) {
  std::vector<QuantizedPart> all;
  for (const QuantizedPart& part : parts) {
    if (!all.empty() && all.back().form == part.form) {
      all.back().num_rows += part.num_rows;
    } else {
      all.push_back(part);
    }
  }
  return all;
}

}  // namespace

QuantMatrix::QuantMatrix(std::span<const QuantizedPart> parts, int64_t k, int64_t slice_cols)
    : k_(k), slice_cols_(slice_cols) {
  FT_CHECK(!parts.empty() && k > 0 && slice_cols > 0);
  cut(parts, slice_cols);
  // Zero where blocks have fewer columns.
  memory_ = PageBlock(place_blocks());
  reserve_quant_rows(k);
}

// Into slices, and these into blocks, which end where the form changes.
void QuantMatrix::cut(std::span<const QuantizedPart> parts, int64_t slice_cols) {
  int cols_left = 0;
  for (const QuantizedPart& part : joined(parts)) {
    FT_CHECK(part.num_rows > 0 && quant_kind(part.form) >= 0 && fits_row(part.form, k_));
    const int form = index_of_form(part.form);
    for (int64_t left = part.num_rows; left > 0;) {
      if (cols_left == 0) {
        slices_.push_back({blocks_.size(), blocks_.size(), 0, 0});
        cols_left = static_cast<int>(slice_cols);
      }
      Slice& slice = slices_.back();
      const auto cols =
          static_cast<int>(std::min<int64_t>({left, int64_t{cols_left}, int64_t{kQuantCols}}));
      blocks_.push_back({slice.cols, cols, form, 0, 0});
      ++slice.end_block;
      slice.cols += cols;
      slice.row_bytes += cols * quantized_row_bytes(part.form, k_);
      cols_left -= cols;
      left -= cols;
    }
  }
}

int QuantMatrix::index_of_form(const QuantForm& form) {
  const auto found = std::find(forms_.begin(), forms_.end(), form);
  const auto index = static_cast<int>(found - forms_.begin());
  if (found == forms_.end()) forms_.push_back(form);
  return index;
}

// The codes of a slice follow one another, then its scales do, so that a thread reads two streams.
size_t QuantMatrix::place_blocks() {
  size_t at = 0;
  for (const Slice& slice : slices_) {
    for (size_t b = slice.first_block; b < slice.end_block; ++b) {
      Block& block = blocks_[b];
      block.codes = at;
      at += static_cast<size_t>(quant_code_bytes(forms_[static_cast<size_t>(block.form)].bits, k_));
    }
    for (size_t b = slice.first_block; b < slice.end_block; ++b) {
      Block& block = blocks_[b];
      block.scales = at;
      at += static_cast<size_t>(quant_scale_bytes(forms_[static_cast<size_t>(block.form)], k_));
    }
    at = round_up(at, kLineBytes);
  }
  return round_up(at, kLineBytes);
}

void QuantMatrix::pack_slice(int i, const std::byte* rows) {
  for (size_t b = slice(i).first_block; b < slice(i).end_block; ++b) {
    const Block& block = blocks_[b];
    pack_block(block, rows);
    rows += block.cols * quantized_row_bytes(forms_[static_cast<size_t>(block.form)], k_);
  }
}

void QuantMatrix::pack_block(const Block& block, const std::byte* rows) {
  const QuantForm& form = forms_[static_cast<size_t>(block.form)];
  const auto step_bytes = static_cast<size_t>(quant_code_bytes(form.bits, kQuantStep));
  std::byte* codes = memory_.data() + block.codes;
  std::memset(codes, 0, static_cast<size_t>(quant_code_bytes(form.bits, k_)));
  for (int col = 0; col < block.cols; ++col) {
    const std::byte* row = rows + col * quantized_row_bytes(form, k_);
    for (int64_t i = 0; i < k_ / kQuantStep; ++i) {
      pack_step(form.bits, row + i * kQuantStep, col, codes + static_cast<size_t>(i) * step_bytes);
    }
    std::byte* scales = memory_.data() + block.scales;
    for_each_scale(form, k_, [&](int64_t from, int64_t to, size_t size) {
      std::memcpy(scales + to + static_cast<size_t>(col) * size, row + from, size);
    });
  }
}

const QuantMatrix::Block& QuantMatrix::block_of(int64_t row) const {
  const Slice& from = slice(static_cast<int>(row / slice_cols_));
  const auto begins_behind = [](int64_t col, const Block& block) { return col < block.first_col; };
  const auto first = blocks_.begin() + static_cast<int64_t>(from.first_block);
  const auto end = blocks_.begin() + static_cast<int64_t>(from.end_block);
  return *(std::upper_bound(first, end, row % slice_cols_, begins_behind) - 1);
}

void QuantMatrix::read_row(int64_t row, float* out) const {
  const Block& block = block_of(row);
  const QuantForm& form = forms_[static_cast<size_t>(block.form)];
  const auto col = static_cast<int>(row % slice_cols_ - block.first_col);
  std::vector<std::byte>& bytes = thread_scratch<RowBytes>().bytes;
  const auto row_bytes = static_cast<size_t>(quantized_row_bytes(form, k_));
  if (bytes.size() < row_bytes) {
    const ForeignAllocationScope once;
    bytes.resize(row_bytes);
  }
  const std::byte* codes = memory_.data() + block.codes;
  for (int64_t i = 0; i < k_; i += kQuantStep) {
    unpack_step(form.bits, codes + quant_code_bytes(form.bits, i), col, bytes.data() + i);
  }
  const std::byte* scales = memory_.data() + block.scales;
  for_each_scale(form, k_, [&](int64_t to, int64_t from, size_t size) {
    std::memcpy(bytes.data() + to, scales + from + static_cast<size_t>(col) * size, size);
  });
  dequantize_row(form, bytes.data(), k_, out);
}

// Many rows go over a piece of k at a time, so that neither the codes nor x leave the nearest
// caches between the blocks.
void QuantMatrix::multiply(const QuantKernels& kernels, int i, const QuantRows& x, int first_row,
                           int num_rows, float* y) const {
  FT_CHECK(x.block_rows == kernels.max_rows && first_row % kernels.max_rows == 0);
  FT_CHECK(x.num_steps * kQuantStep == k_ && num_rows <= kMaxQuantTileRows);
  FT_CHECK(first_row + num_rows == x.num_rows || num_rows % kernels.max_rows == 0);
  for (size_t b = slice(i).first_block; b < slice(i).end_block; b += kBlocksAtOnce) {
    const size_t end = std::min(b + kBlocksAtOnce, slice(i).end_block);
    multiply_blocks(kernels, {blocks_.data() + b, blocks_.data() + end}, x, first_row, num_rows,
                    {y, slice(i).cols});
  }
}

void QuantMatrix::multiply_blocks(const QuantKernels& kernels, std::span<const Block> blocks,
                                  const QuantRows& x, int first_row, int num_rows, Output y) const {
  float* sums = thread_scratch<BlockSums>().sums;
  const int tile_size = num_rows * kQuantCols;
  std::fill_n(sums, static_cast<size_t>(tile_size) * blocks.size(), 0.0f);
  const int64_t at_once = num_rows > kernels.max_rows ? kStepsAtOnce : x.num_steps;
  for (int64_t step = 0; step < x.num_steps; step += at_once) {
    const Piece piece{step, std::min(at_once, x.num_steps - step), first_row, num_rows};
    float* tile = sums;
    for (const Block& block : blocks) {
      multiply_block(kernels, block, x, piece, tile);
      tile += tile_size;
    }
  }
  const float* tile = sums;
  for (const Block& block : blocks) {
    for (int r = 0; r < num_rows; ++r) {
      std::copy_n(tile + r * kQuantCols, block.cols,
                  y.data + int64_t{r} * y.cols + block.first_col);
    }
    tile += tile_size;
  }
}

// A block whose groups are longer than pieces is multiplied at once, with the first piece.
void QuantMatrix::multiply_block(const QuantKernels& kernels, const Block& block,
                                 const QuantRows& x, Piece piece, float* tile) const {
  const QuantForm& form = forms_[static_cast<size_t>(block.form)];
  const int steps_per_group = std::max(form.group / kQuantStep, 1);
  if (kStepsAtOnce % steps_per_group != 0) {
    if (piece.first_step > 0) return;
    piece.num_steps = x.num_steps;
  }
  const QuantProduct* products = kernels.products[quant_kind(form)];
  const int64_t k = piece.first_step * kQuantStep;
  const std::byte* codes = memory_.data() + block.codes + quant_code_bytes(form.bits, k);
  const std::byte* scales = memory_.data() + block.scales + quant_scale_bytes(form, k);
  const QuantBlock packed{reinterpret_cast<const uint8_t*>(codes),
                          reinterpret_cast<const uint8_t*>(scales)};
  for (int row = 0; row < piece.num_rows; row += kernels.max_rows) {
    const int index = (piece.first_row + row) / kernels.max_rows;
    const int rows = x.rows_of_block(index);
    products[rows - 1](packed, x.block(index) + piece.first_step * rows, piece.num_steps,
                       steps_per_group, tile + row * kQuantCols);
  }
}

}  // namespace foretoken::cpu
