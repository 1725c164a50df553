#include "model/files/containers/unpacked_tensor.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/float8.h"
#include "model/files/containers/marlin_order.h"
#include "model/files/containers/safetensors.h"

namespace foretoken {
namespace {

constexpr int64_t kFour = 4;  // neighbours of which two are kept
constexpr int64_t kTileCodes = kMarlinTile * kMarlinTile;

// Of a float of six bits, as E4M3.
uint8_t e4m3_of_six_bits(uint32_t code, int mantissa_bits) {
  const uint32_t mantissa = code & ((1u << mantissa_bits) - 1);
  const uint32_t exponent = (code & 31) >> mantissa_bits;
  const int bias = mantissa_bits == 2 ? 3 : 1;
  const uint32_t whole = mantissa + (exponent > 0 ? 1u << mantissa_bits : 0);
  const int power = std::max(static_cast<int>(exponent), 1) - bias - mantissa_bits;
  const float size = std::ldexp(static_cast<float>(whole), power);
  return e4m3_code(code & 32 ? -size : size);
}

std::array<std::byte, 64> six_bit_values(int mantissa_bits) {
  std::array<std::byte, 64> values;
  for (uint32_t code = 0; code < values.size(); ++code) {
    values[code] = static_cast<std::byte>(e4m3_of_six_bits(code, mantissa_bits));
  }
  return values;
}

int64_t ones_in(const std::byte* mask, int64_t cols) {
  int64_t ones = 0;
  for (int64_t i = 0; i < (cols + 7) / 8; ++i) {
    ones += std::popcount(static_cast<uint8_t>(mask[i]));
  }
  return ones;
}

}  // namespace

Result<std::unique_ptr<UnpackedTensor>> UnpackedTensor::create(const UnpackedParts& parts) {
  std::unique_ptr<UnpackedTensor> tensor(new UnpackedTensor(parts));
  switch (parts.packing) {
    case Packing::kMask:
      FT_RETURN_IF_ERROR(tensor->find_masked());
      FT_RETURN_IF_ERROR(tensor->check_mask());
      break;
    case Packing::kMarlin24:
      FT_RETURN_IF_ERROR(tensor->find_marlin());
      break;
    case Packing::kE3m2:
    case Packing::kE2m3:
      FT_RETURN_IF_ERROR(tensor->find_six_bits());
      break;
  }
  return tensor;
}

Status UnpackedTensor::misfit(const TensorView& tensor, const char* wanted) const {
  return invalid_argument(tensor.file + ": tensor '" + tensor.name + "', " + tensor.dtype_name +
                          " " + tensor.shape_text() + ", is not " + wanted +
                          "; fetch the checkpoint again");
}

Status UnpackedTensor::find_masked() {
  FT_CHECK(parts_.places != nullptr && parts_.shape != nullptr);
  FT_ASSIGN_OR_RETURN(shape_, read_integers(*parts_.shape));
  const bool fits = shape_.size() == 2 && std::ranges::all_of(shape_, [](int64_t size) {
                      return size > 0 && size < int64_t{1} << 31;
                    });
  if (!fits) return misfit(*parts_.shape, "the shape of a matrix");
  rows_ = shape_[0];
  cols_ = shape_[1];
  const int64_t element = parts_.values->element_bytes();
  row_bytes_ = cols_ * element;
  const TensorView& mask = *parts_.places;
  if (mask.dtype_name != "U8" || mask.shape != std::vector{rows_, (cols_ + 7) / 8}) {
    return misfit(mask, "a bit for each element of the matrix");
  }
  const int64_t values = parts_.values->num_elements();
  if (parts_.starts != nullptr) {
    FT_ASSIGN_OR_RETURN(starts_, read_integers(*parts_.starts));
    if (std::ssize(starts_) != rows_) return misfit(*parts_.starts, "a number for each row");
  } else {
    for (int64_t r = 0; r < rows_; ++r) starts_.push_back(r * (cols_ / 2));
  }
  starts_.push_back(values);
  const bool rise = starts_[0] == 0 && std::ranges::is_sorted(starts_);
  return element > 0 && rise ? Status() : misfit(*parts_.values, "the elements that the rows keep");
}

// That each row keeps as many elements as it has.
Status UnpackedTensor::check_mask() const {
  const int64_t mask_bytes = (cols_ + 7) / 8;
  std::vector<std::byte> mask(static_cast<size_t>(strip_rows_ * mask_bytes));
  for (int64_t first = 0; first < rows_; first += strip_rows_) {
    const int64_t count = std::min(strip_rows_, rows_ - first);
    FT_RETURN_IF_ERROR(parts_.places->read(first * mask_bytes, count * mask_bytes, mask.data()));
    for (int64_t r = 0; r < count; ++r) {
      const auto at = static_cast<size_t>(first + r);
      if (ones_in(mask.data() + r * mask_bytes, cols_) == starts_[at + 1] - starts_[at]) continue;
      return misfit(*parts_.places, "a mask of as many elements as its rows keep");
    }
  }
  return {};
}

Status UnpackedTensor::find_marlin() {
  FT_CHECK(parts_.places != nullptr && (parts_.bits == 4 || parts_.bits == 8));
  const TensorView& words = *parts_.values;
  const TensorView& places = *parts_.places;
  const bool is_matrix = words.dtype_name == "I32" && words.shape.size() == 2 &&
                         words.num_elements() > 0 && words.shape[1] * 2 % parts_.bits == 0;
  if (!is_matrix) return misfit(words, "words of Marlin 24");
  rows_ = words.shape[1] * 2 / parts_.bits;
  cols_ = words.shape[0] * kMarlinTile * 2;
  if (rows_ % kMarlinRows != 0) return misfit(words, "words of Marlin 24, whose rows are 64 each");
  if (places.dtype_name != "I16" || places.num_elements() * kMarlinTile != rows_ * cols_) {
    return misfit(places, "two places of each four elements of the matrix");
  }
  strip_rows_ = kMarlinRows;
  row_bytes_ = cols_ * parts_.bits / 8;
  shape_ = {rows_, cols_ * parts_.bits / 32};
  return {};
}

Status UnpackedTensor::find_six_bits() {
  const TensorView& codes = *parts_.values;
  const bool fits = codes.dtype_name == "U8" && codes.shape.size() >= 2 &&
                    codes.num_elements() > 0 && codes.shape.back() % 3 == 0;
  if (!fits) return misfit(codes, "rows of four floats in three bytes");
  shape_ = codes.shape;
  shape_.back() = shape_.back() / 3 * 4;
  cols_ = row_bytes_ = shape_.back();
  rows_ = codes.num_elements() / codes.shape.back();
  return {};
}

TensorView UnpackedTensor::view(const std::string& name) const {
  TensorView view;
  view.name = name;
  view.file = parts_.values->file;
  view.shape = shape_;
  view.num_bytes = rows_ * row_bytes_;
  view.unpacked = this;
  const bool six = parts_.packing == Packing::kE3m2 || parts_.packing == Packing::kE2m3;
  view.dtype = six ? FileDType::kOther : parts_.values->dtype;
  view.dtype_name = six ? "F8_E4M3" : parts_.values->dtype_name;
  return view;
}

Status UnpackedTensor::unpack_masked(int64_t first, int64_t count) const {
  const int64_t element = row_bytes_ / cols_, mask_bytes = (cols_ + 7) / 8;
  const int64_t begin = starts_[static_cast<size_t>(first)];
  const int64_t end = starts_[static_cast<size_t>(first + count)];
  std::vector<std::byte> mask(static_cast<size_t>(count * mask_bytes));
  std::vector<std::byte> values(static_cast<size_t>((end - begin) * element));
  FT_RETURN_IF_ERROR(parts_.places->read(first * mask_bytes, count * mask_bytes, mask.data()));
  FT_RETURN_IF_ERROR(parts_.values->read(begin * element, (end - begin) * element, values.data()));
  const std::byte* from = values.data();
  const std::byte* last = from + values.size();
  for (int64_t r = 0; r < count; ++r) {
    const std::byte* bits = mask.data() + r * mask_bytes;
    std::byte* row = kept_.data() + r * row_bytes_;
    for (int64_t c = 0; c < cols_; ++c) {
      const bool is_kept = (bits[c / 8] >> (c % 8) & std::byte{1}) != std::byte{0};
      if (!is_kept || from == last) continue;
      std::memcpy(row + c * element, from, static_cast<size_t>(element));
      from += element;
    }
  }
  return {};
}

// The rows of one strip: their words lie together in each line of the file, and their places, too.
Status UnpackedTensor::unpack_marlin(int64_t strip) const {
  const int64_t bits = parts_.bits, in_word = 32 / bits;
  const int64_t line_words = rows_ * kMarlinTile / in_word;
  const int64_t strip_words = kMarlinRows * kMarlinTile / in_word;
  const std::vector<int32_t>& order = marlin_order(static_cast<int>(bits));
  const uint32_t zero = 1u << (bits - 1), all = (1u << bits) - 1;
  std::vector<uint32_t> words(static_cast<size_t>(strip_words));
  std::vector<uint16_t> places(static_cast<size_t>(kMarlinRows * 2));
  std::vector<uint8_t> codes(static_cast<size_t>(kMarlinRows * kMarlinTile * 2));
  for (int64_t line = 0; line < cols_ / (2 * kMarlinTile); ++line) {
    FT_RETURN_IF_ERROR(parts_.values->read((line * line_words + strip * strip_words) * 4,
                                           strip_words * 4, words.data()));
    FT_RETURN_IF_ERROR(parts_.places->read((line * rows_ + strip * kMarlinRows) * 2 * 2,
                                           kMarlinRows * 2 * 2, places.data()));
    std::ranges::fill(codes, static_cast<uint8_t>(zero));
    for (int64_t i = 0; i < kMarlinRows * kMarlinTile; ++i) {
      const int64_t row = i / kTileCodes * kMarlinTile + i % kMarlinTile;
      const int64_t kept = i % kTileCodes / kMarlinTile;  // of 16 in the row
      const int64_t at = order[static_cast<size_t>(i)];
      const uint32_t code = words[static_cast<size_t>(at / in_word)] >> (at % in_word * bits) & all;
      const int64_t four = kept / 2;
      const uint32_t pair =
          places[static_cast<size_t>(marlin_place(row, four / kFour))] >> (four % kFour * kFour);
      const uint32_t place = kept % 2 == 0 ? pair & 3 : pair >> 2 & 3;
      codes[static_cast<size_t>(row * kMarlinTile * 2 + four * kFour + place)] =
          static_cast<uint8_t>(code);
    }
    for (int64_t row = 0; row < kMarlinRows; ++row) {
      std::byte* to = kept_.data() + row * row_bytes_ + line * 2 * kMarlinTile * bits / 8;
      const uint8_t* from = codes.data() + row * kMarlinTile * 2;
      for (int64_t c = 0; c < 2 * kMarlinTile; ++c) {
        to[c * bits / 8] |= static_cast<std::byte>(from[c] << (c * bits % 8));
      }
    }
  }
  return {};
}

Status UnpackedTensor::unpack_six_bits(int64_t first, int64_t count) const {
  static const std::array<std::byte, 64> e3m2 = six_bit_values(2);
  static const std::array<std::byte, 64> e2m3 = six_bit_values(3);
  const std::array<std::byte, 64>& values = parts_.packing == Packing::kE3m2 ? e3m2 : e2m3;
  const int64_t packed = cols_ / 4 * 3;
  std::vector<uint8_t> bytes(static_cast<size_t>(count * packed));
  FT_RETURN_IF_ERROR(parts_.values->read(first * packed, count * packed, bytes.data()));
  for (size_t i = 0; i + 2 < bytes.size(); i += 3) {
    const uint32_t four = bytes[i] | bytes[i + 1] << 8 | static_cast<uint32_t>(bytes[i + 2]) << 16;
    for (size_t j = 0; j < 4; ++j) kept_[i / 3 * 4 + j] = values[four >> (6 * j) & 63];
  }
  return {};
}

Status UnpackedTensor::unpack(int64_t strip) const {
  const int64_t first = strip * strip_rows_, count = std::min(strip_rows_, rows_ - first);
  strip_ = -1;
  kept_.assign(static_cast<size_t>(count * row_bytes_), std::byte{0});
  const Status done = parts_.packing == Packing::kMask       ? unpack_masked(first, count)
                      : parts_.packing == Packing::kMarlin24 ? unpack_marlin(strip)
                                                             : unpack_six_bits(first, count);
  if (done.ok()) strip_ = strip;
  return done;
}

Status UnpackedTensor::read(int64_t first, int64_t count, void* to) const {
  const std::lock_guard lock(mutex_);
  const int64_t strip_bytes = strip_rows_ * row_bytes_;
  auto* out = static_cast<std::byte*>(to);
  while (count > 0) {
    const int64_t strip = first / strip_bytes;
    if (strip != strip_) FT_RETURN_IF_ERROR(unpack(strip));
    const int64_t here = std::min(count, (strip + 1) * strip_bytes - first);
    std::memcpy(out, kept_.data() + first % strip_bytes, static_cast<size_t>(here));
    first += here;
    count -= here;
    out += here;
  }
  return {};
}

// A group that is no shorter than what rows keep counts as the whole row there.
Result<std::vector<uint16_t>> marlin_scales(const TensorView& scales, int64_t rows) {
  const bool fits = scales.dtype_name == "F16" && scales.shape.size() == 2 && scales.shape[0] > 0 &&
                    scales.shape[1] == rows && rows % kMarlinRows == 0;
  if (!fits) {
    return invalid_argument(scales.file + ": tensor '" + scales.name + "', " + scales.dtype_name +
                            " " + scales.shape_text() + ", is not the scales of " +
                            std::to_string(rows) +
                            " rows of Marlin 24 (F16); fetch the checkpoint again");
  }
  const int64_t groups = scales.shape[0];
  std::vector<uint16_t> packed(static_cast<size_t>(groups * rows)), out(packed.size());
  FT_RETURN_IF_ERROR(scales.read(0, scales.num_bytes, packed.data()));
  for (int64_t i = 0; i < groups * rows; ++i) {
    const int64_t group = i / rows, row = i % rows;
    const int64_t from = groups > 2 ? marlin_scale_of(row) : row;
    out[static_cast<size_t>(row * groups + group)] =
        packed[static_cast<size_t>(group * rows + from)];
  }
  return out;
}

}  // namespace foretoken
