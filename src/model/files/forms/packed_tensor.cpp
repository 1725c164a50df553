#include "model/files/forms/packed_tensor.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "base/check.h"
#include "base/half.h"
#include "model/files/containers/safetensors.h"
#include "model/files/forms/convert.h"

namespace foretoken {
namespace {

// Which of the eight rows of a word of AutoAWQ lies in its first, second, ... four bits.
constexpr std::array<int, 8> kAwqRows = {0, 2, 4, 6, 1, 3, 5, 7};
constexpr int64_t kLinesAtOnce = 16;  // of the file, whose codes are neighbours in a row
constexpr int64_t kMaxElementsAtOnce = int64_t{8} << 20;

Status expect(const TensorView& tensor, std::vector<int64_t> shape) {
  if (tensor.shape == shape) return {};
  TensorView wanted;
  wanted.shape = std::move(shape);
  return unfit_shape(tensor, ", but quantization_config asks for " + wanted.shape_text());
}

Status expect_words(const TensorView& tensor) {
  if (tensor.dtype_name == "I32" && tensor.shape.size() == 2) return {};
  return unsupported(tensor.file + ": tensor '" + tensor.name + "' is " + tensor.dtype_name + " " +
                     tensor.shape_text() +
                     ", but quantised codes are read as a matrix of I32; save it in the layout of "
                     "AutoGPTQ or AutoAWQ (gemm)");
}

// Words [first, first + count) of row `row`.
Status read_words(const TensorView& tensor, int64_t row, int64_t first, int64_t count,
                  std::vector<uint32_t>& words) {
  words.resize(static_cast<size_t>(count));
  return tensor.read((row * tensor.shape[1] + first) * 4, count * 4, words.data());
}

// Two integers of 64 or 32 bits.
Status read_shape(const TensorView& tensor, int64_t* sizes) {
  const int64_t bytes = tensor.num_elements() == 2 ? tensor.num_bytes / 2 : 0;
  int32_t small[2];
  if (tensor.dtype_name == "I64" && bytes == 8) return tensor.read(0, 16, sizes);
  if (tensor.dtype_name != "I32" || bytes != 4) {
    return unsupported(tensor.file + ": tensor '" + tensor.name +
                       "' must be two integers (I64); save the model again");
  }
  FT_RETURN_IF_ERROR(tensor.read(0, 8, small));
  sizes[0] = small[0];
  sizes[1] = small[1];
  return {};
}

// Columns that share a scale where a row of `cols` has `count` of them.
int64_t group_size(int64_t cols, int64_t count) {
  if (count <= 1) return -1;
  if (cols % count == 0) return cols / count;
  int64_t group = 32;
  while ((cols + group - 1) / group > count) group *= 2;
  return group;
}

int code_in(uint32_t word, int64_t place, int bits) {
  return static_cast<int>(word >> (place * bits) & ((1u << bits) - 1));
}

// The code from bit `at` on of words of which word(i) is the i-th; some of bits that do not divide
// 32 lie in two.
template <class Word>
int code_across(const Word& word, int64_t at, int bits) {
  const int64_t i = at / 32, shift = at % 32;
  uint32_t code = word(i) >> shift;
  if (shift + bits > 32) code |= word(i + 1) << (32 - shift);
  return static_cast<int>(code & ((1u << bits) - 1));
}

Status check_whole(const Quantization& quantization, const PackedParts& parts) {
  const char* missing = quantization.needs_zeros && parts.zeros == nullptr ? "zeros"
                        : quantization.needs_groups && parts.groups == nullptr
                            ? "groups of columns (g_idx)"
                            : nullptr;
  if (missing == nullptr) return {};
  return invalid_argument(parts.codes->file + ": the quantised matrix of '" + parts.codes->name +
                          "' lacks its " + missing +
                          ", which quantization_config says it has; fetch the checkpoint again");
}

// Of AutoAWQ's order.
bool has_words_of_rows(PackLayout layout) {
  return layout == PackLayout::kAwq || layout == PackLayout::kQuark;
}

// Words of GPTQ's that hold whole codes.
int64_t words_of_whole_codes(int bits) { return 32 % bits == 0 ? 1 : bits; }

}  // namespace

Result<PackedTensor> PackedTensor::create(const Quantization& quantization,
                                          const PackedParts& parts) {
  FT_CHECK(parts.codes != nullptr && parts.scales != nullptr);
  PackedTensor tensor(quantization, parts);
  FT_RETURN_IF_ERROR(check_whole(quantization, parts));
  if (quantization.differs) FT_RETURN_IF_ERROR(tensor.find_sizes());
  FT_RETURN_IF_ERROR(tensor.check_shapes());
  FT_RETURN_IF_ERROR(check_finite(*parts.scales));
  FT_RETURN_IF_ERROR(tensor.read_groups());
  FT_RETURN_IF_ERROR(tensor.find_form());
  return tensor;
}

// The matrix's own bits and group, where each may have others.
Status PackedTensor::find_sizes() {
  const TensorView& codes = *parts_.codes;
  FT_RETURN_IF_ERROR(expect_words(codes));
  const bool by_row = quantization_.layout == PackLayout::kCompressed;
  int64_t bits = 4;
  if (quantization_.layout == PackLayout::kGptq) {
    FT_RETURN_IF_ERROR(expect_words(*parts_.zeros));
    bits = codes.shape[1] > 0 ? parts_.zeros->shape[1] * 32 / codes.shape[1] : 0;
  } else if (by_row) {
    int64_t sizes[2] = {0, 0};
    if (parts_.shape != nullptr) FT_RETURN_IF_ERROR(read_shape(*parts_.shape, sizes));
    bits = sizes[1] > 0 ? codes.shape[1] * 32 / sizes[1] : 0;
  }
  const TensorView& scales = *parts_.scales;
  const bool are_gptq = quantization_.layout == PackLayout::kGptq && bits >= 2 && bits <= 8;
  const bool are_read = bits == 4 || bits == 8 || are_gptq || (by_row && bits == 2);
  if (!are_read || scales.shape.size() != 2) {
    return unsupported(codes.file + ": the codes of '" + codes.name + "', " + codes.shape_text() +
                       ", and their scales, " + scales.shape_text() +
                       ", are of no matrix of bits that are read; save the model in the layout of "
                       "AutoGPTQ or compressed-tensors (pack-quantized, with weight_shape)");
  }
  quantization_.bits = static_cast<int32_t>(bits);
  const int64_t words = by_row ? codes.shape[1] : codes.shape[0];
  const int64_t cols = has_words_of_rows(quantization_.layout) ? words : words * 32 / bits;
  quantization_.group = group_size(cols, by_row ? scales.shape[1] : scales.shape[0]);
  return {};
}

Status PackedTensor::find_form() {
  const int64_t group = num_groups_ > 0 ? cols_ / num_groups_ : 0;
  if (!groups_follow_ || rows_ == 0 || group == 0 || cols_ % group != 0) return {};
  const int32_t middle = 1 << (quantization_.bits - 1);
  bool is_symmetric = true;
  std::vector<float> scales;
  std::vector<int32_t> zeros;
  const int64_t most = std::max<int64_t>(kMaxElementsAtOnce / num_groups_, 1);
  for (int64_t first = 0; first < rows_; first += most) {
    const int64_t count = std::min(most, rows_ - first);
    scales.resize(static_cast<size_t>(count * num_groups_));
    zeros.resize(scales.size());
    FT_RETURN_IF_ERROR(read_scales(first, count, scales.data()));
    FT_RETURN_IF_ERROR(read_zeros(first, count, zeros.data()));
    const auto is_half = [](float scale) { return half_to_float(half_from_float(scale)) == scale; };
    const auto is_byte = [](int32_t zero) { return zero >= 0 && zero < 256; };
    if (!std::all_of(scales.begin(), scales.end(), is_half)) return {};
    if (!std::all_of(zeros.begin(), zeros.end(), is_byte)) return {};
    is_symmetric &=
        std::all_of(zeros.begin(), zeros.end(), [=](int32_t zero) { return zero == middle; });
  }
  // Codes of other bits stay as four or eight, whose middle is another.
  const int32_t kept = quantization_.bits <= 4 ? 4 : 8;
  const bool has_middle = is_symmetric && kept == quantization_.bits;
  form_ = QuantForm{static_cast<uint8_t>(kept),
                    has_middle ? GroupScale::kHalf : GroupScale::kHalfAndZero,
                    static_cast<int32_t>(group)};
  return {};
}

Status PackedTensor::check_shapes() {
  const int64_t bits = quantization_.bits;
  const PackLayout layout = quantization_.layout;
  FT_RETURN_IF_ERROR(expect_words(*parts_.codes));
  const std::vector<int64_t>& shape = parts_.codes->shape;
  rows_ = layout == PackLayout::kCompressed ? shape[0]
          : layout == PackLayout::kGptq     ? shape[1]
                                            : shape[1] * 32 / bits;
  cols_ = layout == PackLayout::kCompressed ? shape[1] * 32 / bits
          : layout == PackLayout::kGptq     ? shape[0] * 32 / bits
                                            : shape[0];
  if (layout == PackLayout::kGptq && shape[0] % words_of_whole_codes(static_cast<int>(bits)) != 0) {
    return unfit_shape(*parts_.codes, ", which is no matrix of " + std::to_string(bits) + " bits");
  }
  const int64_t group = quantization_.group < 0 ? cols_ : quantization_.group;
  num_groups_ = group > 0 ? (cols_ + group - 1) / group : 0;
  const bool by_row = layout == PackLayout::kCompressed;
  FT_RETURN_IF_ERROR(check_convertible(*parts_.scales));
  FT_RETURN_IF_ERROR(expect(
      *parts_.scales, by_row ? std::vector{rows_, num_groups_} : std::vector{num_groups_, rows_}));
  if (parts_.zeros == nullptr) return {};
  FT_RETURN_IF_ERROR(expect_words(*parts_.zeros));
  const int64_t words = (rows_ * bits + 31) / 32;
  return expect(*parts_.zeros,
                by_row ? std::vector{words, num_groups_} : std::vector{num_groups_, words});
}

Status PackedTensor::read_groups() {
  const int64_t group = quantization_.group < 0 ? cols_ : quantization_.group;
  group_of_.resize(static_cast<size_t>(cols_));
  for (int64_t i = 0; i < cols_; ++i) {
    group_of_[static_cast<size_t>(i)] = static_cast<int32_t>(i / group);
  }
  groups_follow_ = cols_ % std::max<int64_t>(group, 1) == 0;
  if (parts_.groups == nullptr) return {};
  const TensorView& given = *parts_.groups;
  if (given.dtype_name != "I32") {
    return unsupported(given.file + ": tensor '" + given.name + "' must be I32; convert it");
  }
  FT_RETURN_IF_ERROR(expect(given, {cols_}));
  std::vector<int32_t> groups(group_of_.size());
  FT_RETURN_IF_ERROR(given.read(0, cols_ * 4, groups.data()));
  for (const int32_t index : groups) {
    if (index >= 0 && index < num_groups_) continue;
    return invalid_argument(given.file + ": tensor '" + given.name + "' names the group " +
                            std::to_string(index) + " of " + std::to_string(num_groups_) +
                            "; the file is damaged, fetch it again");
  }
  // Some tools write 0 for every column where they do not reorder them.
  const bool says_nothing = std::ranges::all_of(groups, [](int32_t index) { return index == 0; });
  if (says_nothing) return {};
  groups_follow_ = groups_follow_ && groups == group_of_;
  group_of_ = std::move(groups);
  return {};
}

Status PackedTensor::read_codes(int64_t first, int64_t count, uint8_t* codes) const {
  if (quantization_.layout == PackLayout::kGptq) return read_gptq_codes(first, count, codes);
  if (has_words_of_rows(quantization_.layout)) return read_awq_codes(first, count, codes);
  const int bits = quantization_.bits;
  const int64_t pack = 32 / bits, row_words = cols_ / pack;
  std::vector<uint32_t> words(static_cast<size_t>(count * row_words));
  FT_RETURN_IF_ERROR(
      parts_.codes->read(first * row_words * 4, count * row_words * 4, words.data()));
  for (const uint32_t word : words) {
    for (int64_t p = 0; p < pack; ++p) *codes++ = static_cast<uint8_t>(code_in(word, p, bits));
  }
  return {};
}

// Several words of a row at a time, so that a row's line of memory is written at once.
Status PackedTensor::read_gptq_codes(int64_t first, int64_t count, uint8_t* codes) const {
  const int bits = quantization_.bits;
  const int64_t whole = words_of_whole_codes(bits), most = kLinesAtOnce / whole * whole;
  const int64_t num_words = parts_.codes->shape[0];
  std::array<std::vector<uint32_t>, kLinesAtOnce> lines;
  for (int64_t j = 0; j < num_words; j += most) {
    const int64_t here = std::min<int64_t>(most, num_words - j);
    for (int64_t i = 0; i < here; ++i) {
      FT_RETURN_IF_ERROR(
          read_words(*parts_.codes, j + i, first, count, lines[static_cast<size_t>(i)]));
    }
    for (int64_t r = 0; r < count; ++r) {
      uint8_t* to = codes + r * cols_ + j * 32 / bits;
      const auto word = [&](int64_t i) {
        return lines[static_cast<size_t>(i)][static_cast<size_t>(r)];
      };
      for (int64_t bit = 0; bit < here * 32; bit += bits) {
        *to++ = static_cast<uint8_t>(code_across(word, bit, bits));
      }
    }
  }
  return {};
}

Status PackedTensor::read_awq_codes(int64_t first, int64_t count, uint8_t* codes) const {
  const int bits = quantization_.bits;
  const int flipped = quantization_.is_signed ? 1 << (bits - 1) : 0;
  const int64_t pack = 32 / bits;
  const int64_t word = first / pack, num_words = (first + count + pack - 1) / pack - word;
  std::array<std::vector<uint32_t>, kLinesAtOnce> lines;
  for (int64_t col = 0; col < cols_; col += kLinesAtOnce) {
    const int64_t here = std::min<int64_t>(kLinesAtOnce, cols_ - col);
    for (int64_t i = 0; i < here; ++i) {
      FT_RETURN_IF_ERROR(
          read_words(*parts_.codes, col + i, word, num_words, lines[static_cast<size_t>(i)]));
    }
    for (int64_t at = 0; at < num_words * pack; ++at) {
      const int64_t w = at / pack, p = at % pack;
      const int64_t r = (word + w) * pack + kAwqRows[static_cast<size_t>(p)] - first;
      if (r < 0 || r >= count) continue;
      for (int64_t i = 0; i < here; ++i) {
        const uint32_t packed = lines[static_cast<size_t>(i)][static_cast<size_t>(w)];
        codes[r * cols_ + col + i] = static_cast<uint8_t>(code_in(packed, p, bits) ^ flipped);
      }
    }
  }
  return {};
}

Status PackedTensor::read_scales(int64_t first, int64_t count, float* scales) const {
  std::vector<std::byte> raw;
  if (quantization_.layout == PackLayout::kCompressed) {
    return foretoken::read_elements(*parts_.scales, first * num_groups_, count * num_groups_,
                                    DType::kF32, scales, raw);
  }
  std::vector<float> line(static_cast<size_t>(count));
  for (int64_t g = 0; g < num_groups_; ++g) {
    FT_RETURN_IF_ERROR(foretoken::read_elements(*parts_.scales, g * rows_ + first, count,
                                                DType::kF32, line.data(), raw));
    for (int64_t r = 0; r < count; ++r) {
      scales[r * num_groups_ + g] = line[static_cast<size_t>(r)];
    }
  }
  return {};
}

Status PackedTensor::read_zeros(int64_t first, int64_t count, int32_t* zeros) const {
  const int bits = quantization_.bits;
  const int64_t pack = 32 / bits;
  if (parts_.zeros == nullptr) {
    std::fill_n(zeros, count * num_groups_, 1 << (bits - 1));
    return {};
  }
  if (quantization_.layout == PackLayout::kGptq) return read_gptq_zeros(first, count, zeros);
  const bool by_row = quantization_.layout == PackLayout::kCompressed;
  const bool awq = has_words_of_rows(quantization_.layout);
  const int flipped = quantization_.is_signed ? 1 << (bits - 1) : 0;
  const int64_t word = first / pack, num_words = (first + count + pack - 1) / pack - word;
  std::vector<uint32_t> words;
  const int64_t num_lines = by_row ? num_words : num_groups_;
  for (int64_t line = 0; line < num_lines; ++line) {
    FT_RETURN_IF_ERROR(by_row ? read_words(*parts_.zeros, word + line, 0, num_groups_, words)
                              : read_words(*parts_.zeros, line, word, num_words, words));
    for (size_t i = 0; i < words.size(); ++i) {
      const int64_t group = by_row ? static_cast<int64_t>(i) : line;
      const int64_t row_word = word + (by_row ? line : static_cast<int64_t>(i));
      for (int64_t p = 0; p < pack; ++p) {
        const int64_t r = row_word * pack + (awq ? kAwqRows[static_cast<size_t>(p)] : p) - first;
        if (r < 0 || r >= count) continue;
        zeros[r * num_groups_ + group] = code_in(words[i], p, bits) ^ flipped;
      }
    }
  }
  return {};
}

Status PackedTensor::read_gptq_zeros(int64_t first, int64_t count, int32_t* zeros) const {
  const int bits = quantization_.bits;
  const int more = quantization_.stores_zero_less_one ? 1 : 0;
  const int64_t begin = first * bits / 32, end = ((first + count) * bits + 31) / 32;
  std::vector<uint32_t> words;
  const auto word = [&](int64_t i) { return words[static_cast<size_t>(i)]; };
  for (int64_t g = 0; g < num_groups_; ++g) {
    FT_RETURN_IF_ERROR(read_words(*parts_.zeros, g, begin, end - begin, words));
    for (int64_t r = 0; r < count; ++r) {
      zeros[r * num_groups_ + g] = code_across(word, (first + r) * bits - begin * 32, bits) + more;
    }
  }
  return {};
}

Status PackedTensor::read_rows(int64_t first, int64_t count, PackedRows* out) const {
  FT_CHECK(first >= 0 && count >= 0 && first + count <= rows_);
  out->codes.resize(static_cast<size_t>(count * cols_));
  out->scales.resize(static_cast<size_t>(count * num_groups_));
  out->zeros.resize(static_cast<size_t>(count * num_groups_));
  FT_RETURN_IF_ERROR(read_codes(first, count, out->codes.data()));
  FT_RETURN_IF_ERROR(read_scales(first, count, out->scales.data()));
  return read_zeros(first, count, out->zeros.data());
}

Status PackedTensor::read_quantized(int64_t first, int64_t count, std::byte* to) const {
  FT_CHECK(form_.has_value());
  PackedRows rows;
  FT_RETURN_IF_ERROR(read_rows(first, count, &rows));
  for (int64_t r = 0; r < count; ++r) {
    std::memcpy(to, rows.codes.data() + r * cols_, static_cast<size_t>(cols_));
    to += cols_;
    for (int64_t g = r * num_groups_; g < (r + 1) * num_groups_; ++g) {
      const uint16_t half = half_from_float(rows.scales[static_cast<size_t>(g)]);
      std::memcpy(to, &half, sizeof half);
      to += sizeof half;
    }
    if (form_->scale != GroupScale::kHalfAndZero) continue;
    for (int64_t g = r * num_groups_; g < (r + 1) * num_groups_; ++g) {
      *to++ = static_cast<std::byte>(rows.zeros[static_cast<size_t>(g)]);
    }
  }
  return {};
}

Status PackedTensor::read_elements(int64_t first, int64_t count, DType dtype, void* to) const {
  const int64_t most = std::max<int64_t>(kMaxElementsAtOnce / std::max<int64_t>(cols_, 1), 1);
  PackedRows rows;
  for (int64_t done = 0; done < count;) {
    const int64_t row = (first + done) / cols_;
    const int64_t last_row = (first + count - 1) / cols_;
    const int64_t num = std::min(most, last_row - row + 1);
    FT_RETURN_IF_ERROR(read_rows(row, num, &rows));
    const int64_t end = std::min((row + num) * cols_, first + count);
    for (int64_t at = first + done; at < end; ++at, ++done) {
      const int64_t r = at / cols_ - row;
      const auto code = static_cast<size_t>(at - row * cols_);
      const auto group =
          static_cast<size_t>(r * num_groups_ + group_of_[static_cast<size_t>(at % cols_)]);
      const float value =
          rows.scales[group] * static_cast<float>(rows.codes[code] - rows.zeros[group]);
      store_element(value, dtype, to, done);
    }
  }
  return {};
}

}  // namespace foretoken
