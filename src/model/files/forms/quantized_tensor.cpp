#include "model/files/forms/quantized_tensor.h"

#include <algorithm>

#include "base/check.h"
#include "gguf/blocks/block_codes.h"
#include "model/files/forms/affine_tensor.h"
#include "model/files/forms/convert.h"
#include "model/files/forms/packed_tensor.h"
#include "model/files/forms/rounded_tensor.h"
#include "model/files/forms/scaled_tensor.h"

namespace foretoken {

const QuantForm* quantized_form(const TensorView& tensor) {
  static constexpr QuantForm kHalves{16, GroupScale::kNone, 1};
  if (tensor.dtype == FileDType::kF16) return &kHalves;
  if (tensor.packed != nullptr) return tensor.packed->form();
  if (tensor.rounded != nullptr) return tensor.rounded->form();
  if (tensor.scaled != nullptr) return tensor.scaled->form();
  if (tensor.affine != nullptr) return tensor.affine->form();
  return tensor.block != nullptr ? form_of_blocks(*tensor.block) : nullptr;
}

const QuantForm* quantized_form(const TensorView& tensor, DType dtype) {
  const bool rounds = tensor.dtype == FileDType::kF16 && dtype != DType::kF32;
  return rounds ? nullptr : quantized_form(tensor);
}

DType looked_up_dtype(const TensorView& tensor, DType dtype) {
  return tensor.dtype == FileDType::kF16 && dtype == DType::kF32 ? DType::kF16 : dtype;
}

Result<bool> keeps_values(const TensorView& tensor) {
  if (tensor.block == nullptr || splits_all_exactly(*tensor.block)) return true;
  constexpr int64_t kBlocksAtOnce = 1 << 16;
  const BlockType& type = *tensor.block;
  const int64_t blocks = tensor.num_bytes / type.bytes;
  std::vector<std::byte> raw(static_cast<size_t>(std::min(blocks, kBlocksAtOnce) * type.bytes));
  for (int64_t first = 0; first < blocks; first += kBlocksAtOnce) {
    const int64_t count = std::min(kBlocksAtOnce, blocks - first);
    FT_RETURN_IF_ERROR(tensor.read(first * type.bytes, count * type.bytes, raw.data()));
    if (!splits_exactly(type, raw.data(), count)) return false;
  }
  return true;
}

namespace {

bool takes_rows_apart(const TensorView& tensor) {
  return tensor.packed != nullptr || tensor.rounded != nullptr || tensor.scaled != nullptr ||
         tensor.affine != nullptr;
}

// Rows as they lie in the file.
Status read_rows_apart(const TensorView& tensor, int64_t first, int64_t count, std::byte* to,
                       std::vector<std::byte>& raw) {
  if (tensor.packed != nullptr) return tensor.packed->read_quantized(first, count, to);
  if (tensor.rounded != nullptr) return tensor.rounded->read_quantized(first, count, to, raw);
  if (tensor.affine != nullptr) return tensor.affine->read_quantized(first, count, to);
  return tensor.scaled->read_quantized(first, count, to);
}

}  // namespace

Status read_quantized_rows(const TensorView& tensor, int64_t first, int64_t count, std::byte* to,
                           std::vector<std::byte>& raw) {
  const QuantForm* form = quantized_form(tensor);
  FT_CHECK(form != nullptr && tensor.shape.size() >= 2);
  const int64_t k = tensor.shape.back();
  const bool is_half = tensor.block == nullptr;
  const int64_t file_bytes = is_half ? 2 * k : k / tensor.block->elements * tensor.block->bytes;
  const int64_t at_once = tensor.interleaved_rows > 0 ? 1 : count;
  if (!is_half) raw.resize(static_cast<size_t>(at_once * file_bytes));
  for (int64_t row = first; row < first + count; row += at_once) {
    if (takes_rows_apart(tensor)) {
      FT_RETURN_IF_ERROR(read_rows_apart(tensor, row_in_file(tensor, row), at_once, to, raw));
      to += at_once * quantized_row_bytes(*form, k);
      continue;
    }
    if (is_half) {
      FT_RETURN_IF_ERROR(
          tensor.read(row_in_file(tensor, row) * file_bytes, at_once * file_bytes, to));
      to += at_once * file_bytes;
      continue;
    }
    FT_RETURN_IF_ERROR(
        tensor.read(row_in_file(tensor, row) * file_bytes, at_once * file_bytes, raw.data()));
    const int64_t blocks = k / tensor.block->elements;
    for (int64_t i = 0; i < at_once; ++i) {
      FT_RETURN_IF_ERROR(check_blocks(tensor, (row_in_file(tensor, row) + i) * blocks, blocks,
                                      raw.data() + i * file_bytes));
      split_blocks(*tensor.block, raw.data() + i * file_bytes, k, to);
      to += quantized_row_bytes(*form, k);
    }
  }
  return {};
}

}  // namespace foretoken
