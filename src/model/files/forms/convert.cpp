#include "model/files/forms/convert.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include "base/bfloat16.h"
#include "base/check.h"
#include "base/half.h"
#include "gguf/blocks/block_scales.h"
#include "kernels/random_weight.h"
#include "kernels/rows/fill_random.h"
#include "model/files/forms/affine_tensor.h"
#include "model/files/forms/bnb_tensor.h"
#include "model/files/forms/float_zero_tensor.h"
#include "model/files/forms/made_tensor.h"
#include "model/files/forms/packed_tensor.h"
#include "model/files/forms/rounded_tensor.h"
#include "model/files/forms/scaled_tensor.h"

namespace foretoken {
namespace {

// Calls store(i, value as float) for every element; the source may be unaligned.
template <class Store>
void for_each_float(FileDType dtype, const std::byte* data, int64_t count, Store store) {
  for (int64_t i = 0; i < count; ++i) {
    if (dtype == FileDType::kF32) {
      float value;
      std::memcpy(&value, data + 4 * i, sizeof value);
      store(i, value);
    } else {
      uint16_t bits;
      std::memcpy(&bits, data + 2 * i, sizeof bits);
      store(i, dtype == FileDType::kBF16 ? bf16_to_float(bits) : half_to_float(bits));
    }
  }
}

// At element `at` of `out`.
void store_floats(const float* values, int64_t count, DType dtype, void* out, int64_t at) {
  if (dtype == DType::kF32) {
    std::copy_n(values, count, static_cast<float*>(out) + at);
    return;
  }
  std::transform(values, values + count, static_cast<uint16_t*>(out) + at, bf16_from_float);
}

// Reads whole blocks around the elements and decodes a few at a time.
Status read_blocks(const TensorView& tensor, int64_t first, int64_t count, DType dtype, void* to,
                   std::vector<std::byte>& raw) {
  constexpr int64_t kMaxElements = 256;
  const BlockType& block = *tensor.block;
  const int64_t begin = first / block.elements;
  const int64_t end = (first + count + block.elements - 1) / block.elements;
  raw.resize(static_cast<size_t>((end - begin) * block.bytes));
  FT_RETURN_IF_ERROR(tensor.read(begin * block.bytes, (end - begin) * block.bytes, raw.data()));
  FT_RETURN_IF_ERROR(check_blocks(tensor, begin, end - begin, raw.data()));
  float values[kMaxElements];
  for (int64_t i = begin, done = 0; i < end; ++i) {
    block.decode(raw.data() + (i - begin) * block.bytes, 1, values);
    const int64_t skipped = std::max(first - i * block.elements, int64_t{0});
    const int64_t here = std::min(block.elements - skipped, count - done);
    store_floats(values + skipped, here, dtype, to, done);
    done += here;
  }
  return {};
}

// Elements that follow one another in the file.
Status read_run(const TensorView& tensor, int64_t first, int64_t count, DType dtype, void* to,
                std::vector<std::byte>& raw) {
  if (tensor.packed != nullptr) return tensor.packed->read_elements(first, count, dtype, to);
  if (tensor.scaled != nullptr) return tensor.scaled->read_elements(first, count, dtype, to, raw);
  if (tensor.affine != nullptr) return tensor.affine->read_elements(first, count, dtype, to, raw);
  if (tensor.bnb != nullptr) return tensor.bnb->read_elements(first, count, dtype, to, raw);
  if (tensor.float_zeros != nullptr) {
    return tensor.float_zeros->read_elements(first, count, dtype, to, raw);
  }
  if (tensor.rounded != nullptr) return tensor.rounded->read_elements(first, count, dtype, to, raw);
  if (tensor.made != nullptr) return tensor.made->read_elements(first, count, dtype, to, raw);
  if (tensor.block != nullptr) return read_blocks(tensor, first, count, dtype, to, raw);
  const int64_t size = tensor.element_bytes();
  if (has_type(tensor, dtype)) return tensor.read(first * size, count * size, to);
  raw.resize(static_cast<size_t>(count * size));
  FT_RETURN_IF_ERROR(tensor.read(first * size, count * size, raw.data()));
  return convert_elements(tensor, raw.data(), count, dtype, to);
}

// Whether one of the numbers in `bytes` has all bits of `mask`. Without branches, so that the loop
// is compiled to vectors.
template <class Bits>
bool has_number_with(std::span<const std::byte> bytes, Bits mask) {
  bool found = false;
  for (size_t at = 0; at < bytes.size(); at += sizeof(Bits)) {
    Bits bits;
    std::memcpy(&bits, bytes.data() + at, sizeof bits);
    found |= static_cast<Bits>(bits & mask) == mask;
  }
  return found;
}

// Exponents of ones are NaN and the infinities; E4M3 has but NaN, whose mantissa is ones too.
bool has_unbounded(const TensorView& scales, std::span<const std::byte> bytes) {
  if (scales.dtype == FileDType::kF32) return has_number_with<uint32_t>(bytes, 0x7f800000u);
  if (scales.dtype == FileDType::kBF16) return has_number_with<uint16_t>(bytes, 0x7f80u);
  if (scales.dtype == FileDType::kF16) return has_number_with<uint16_t>(bytes, 0x7c00u);
  return has_number_with<uint8_t>(bytes, scales.dtype_name == "F8_E4M3" ? 0x7fu : 0xffu);
}

// What quantised matrices are kept as, all of which have scales.
bool is_matrix_of_bytes(const TensorView& tensor) {
  const bool is_bytes = tensor.dtype_name == "I8" || tensor.dtype_name == "U8";
  const bool is_of_another = tensor.name.find("scale") != std::string::npos ||
                             tensor.name.find("zero") != std::string::npos;
  return is_bytes && tensor.shape.size() >= 2 && !is_of_another;
}

}  // namespace

bool has_type(const TensorView& tensor, DType dtype) {
  return (tensor.dtype == FileDType::kF32 && dtype == DType::kF32) ||
         (tensor.dtype == FileDType::kBF16 && dtype == DType::kBF16) ||
         (tensor.dtype == FileDType::kF16 && dtype == DType::kF16);
}

Status check_convertible(const TensorView& tensor) {
  const bool is_plain = tensor.dtype == FileDType::kF32 || tensor.dtype == FileDType::kBF16 ||
                        tensor.dtype == FileDType::kF16;
  if (is_plain || tensor.packed != nullptr || tensor.scaled != nullptr || tensor.bnb != nullptr ||
      tensor.affine != nullptr || tensor.rounded != nullptr || tensor.made != nullptr ||
      tensor.float_zeros != nullptr ||
      (tensor.block != nullptr && tensor.block->decode != nullptr)) {
    return {};
  }
  const std::string start = tensor.file + ": tensor '" + tensor.name + "' has dtype ";
  if (is_matrix_of_bytes(tensor)) {
    return unsupported(start + tensor.dtype_name +
                       " and no scales beside it; fetch the checkpoint again, or convert the model "
                       "to F32, BF16 or F16");
  }
  return unsupported(start + tensor.dtype_name + "; convert the model to F32, BF16 or F16");
}

Status check_finite(const TensorView& scales) {
  constexpr int64_t kBytesAtOnce = 1 << 20;
  const bool is_float = scales.dtype == FileDType::kF32 || scales.dtype == FileDType::kBF16 ||
                        scales.dtype == FileDType::kF16;
  const std::string& type = scales.dtype_name;
  if (!is_float && type != "F8_E4M3" && type != "F8_E8M0" && type != "U8") return {};
  std::vector<std::byte> bytes;
  for (int64_t first = 0; first < scales.num_bytes; first += kBytesAtOnce) {
    bytes.resize(static_cast<size_t>(std::min(kBytesAtOnce, scales.num_bytes - first)));
    FT_RETURN_IF_ERROR(scales.read(first, std::ssize(bytes), bytes.data()));
    if (!has_unbounded(scales, bytes)) continue;
    return invalid_argument(scales.file + ": tensor '" + scales.name +
                            "' has a scale that is NaN or infinite; the file is damaged, fetch it "
                            "again");
  }
  return {};
}

Status check_blocks(const TensorView& tensor, int64_t first, int64_t count,
                    const std::byte* blocks) {
  const int64_t found = first_unbounded_block(*tensor.block, blocks, count);
  if (found < 0) return {};
  return invalid_argument(tensor.file + ": block " + std::to_string(first + found) +
                          " of tensor '" + tensor.name +
                          "' has a scale that is NaN or infinite; the file is damaged, fetch it "
                          "again");
}

Status convert_elements(const TensorView& tensor, const std::byte* data, int64_t count, DType dtype,
                        void* out) {
  FT_CHECK(dtype == DType::kF32 || dtype == DType::kBF16 || has_type(tensor, dtype));
  FT_RETURN_IF_ERROR(check_convertible(tensor));
  FT_CHECK(tensor.dtype != FileDType::kOther);
  if (has_type(tensor, dtype)) {
    if (count > 0) std::memcpy(out, data, static_cast<size_t>(count) * dtype_size(dtype));
  } else if (dtype == DType::kF32) {
    for_each_float(tensor.dtype, data, count,
                   [out = static_cast<float*>(out)](int64_t i, float v) { out[i] = v; });
  } else {
    for_each_float(
        tensor.dtype, data, count,
        [out = static_cast<uint16_t*>(out)](int64_t i, float v) { out[i] = bf16_from_float(v); });
  }
  return {};
}

int64_t row_in_file(const TensorView& tensor, int64_t row) {
  const int64_t head = tensor.interleaved_rows;
  if (head == 0) return row;
  const int64_t in_head = row % head;
  return row - in_head + in_head % (head / 2) * 2 + in_head / (head / 2);
}

namespace {

// Of each half of a row that is touched, all between the first and the last element wanted.
template <class T>
Status read_alternating(const TensorView& tensor, int64_t first, int64_t count, DType dtype, T* to,
                        std::vector<std::byte>& raw) {
  const int64_t cols = tensor.interleaved_cols, half = cols / 2;
  std::vector<T> line;
  for (int64_t done = 0; done < count;) {
    const int64_t row = (first + done) / cols, col = (first + done) % cols;
    const bool is_second = col >= half;
    const int64_t here = std::min((is_second ? cols : half) - col, count - done);
    line.resize(static_cast<size_t>(2 * here - 1));
    const int64_t begin = row * cols + col % half * 2 + (is_second ? 1 : 0);
    FT_RETURN_IF_ERROR(read_run(tensor, begin, 2 * here - 1, dtype, line.data(), raw));
    for (int64_t i = 0; i < here; ++i) *to++ = line[static_cast<size_t>(2 * i)];
    done += here;
  }
  return {};
}

}  // namespace

Status read_elements(const TensorView& tensor, int64_t first, int64_t count, DType dtype, void* to,
                     std::vector<std::byte>& raw) {
  if (tensor.interleaved_cols > 0) {
    return dtype == DType::kF32
               ? read_alternating(tensor, first, count, dtype, static_cast<float*>(to), raw)
               : read_alternating(tensor, first, count, dtype, static_cast<uint16_t*>(to), raw);
  }
  if (tensor.interleaved_rows == 0) return read_run(tensor, first, count, dtype, to, raw);
  const int64_t cols = tensor.shape.size() > 1 ? tensor.shape.back() : 1;
  auto* out = static_cast<std::byte*>(to);
  for (int64_t done = 0; done < count;) {
    const int64_t row = (first + done) / cols, col = (first + done) % cols;
    const int64_t here = std::min(cols - col, count - done);
    FT_RETURN_IF_ERROR(
        read_run(tensor, row_in_file(tensor, row) * cols + col, here, dtype, out, raw));
    out += here * static_cast<int64_t>(dtype_size(dtype));
    done += here;
  }
  return {};
}

Status convert_tensor(const TensorView& tensor, DType dtype, void* out) {
  std::vector<std::byte> raw;
  return read_elements(tensor, 0, tensor.num_elements(), dtype, out, raw);
}

void fill_random(std::string_view name, int64_t count, float deviation, DType dtype, void* out) {
  const float scale = random_weight_scale(deviation);
  const uint64_t seed = random_weight_seed(name);
  for (int64_t i = 0; i < count; ++i) {
    const float value = random_weight(seed, static_cast<uint64_t>(i), scale);
    store_element(value, dtype, out, i);
  }
}

}  // namespace foretoken
