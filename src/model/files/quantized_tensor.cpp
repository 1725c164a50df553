#include "model/files/quantized_tensor.h"

#include <algorithm>

#include "base/check.h"
#include "gguf/block_codes.h"
#include "model/files/convert.h"
#include "model/files/packed_tensor.h"

namespace foretoken {

const QuantForm* quantized_form(const TensorView& tensor) {
  if (tensor.packed != nullptr) return tensor.packed->form();
  return tensor.block != nullptr ? form_of_blocks(*tensor.block) : nullptr;
}

Status read_quantized_rows(const TensorView& tensor, int64_t first, int64_t count, std::byte* to,
                           std::vector<std::byte>& raw) {
  const QuantForm* form = quantized_form(tensor);
  FT_CHECK(form != nullptr && tensor.shape.size() == 2);
  if (tensor.packed != nullptr) return tensor.packed->read_quantized(first, count, to);
  const int64_t k = tensor.shape[1];
  const int64_t file_bytes = k / tensor.block->elements * tensor.block->bytes;
  const int64_t at_once = tensor.interleaved_rows > 0 ? 1 : count;
  raw.resize(static_cast<size_t>(at_once * file_bytes));
  for (int64_t row = first; row < first + count; row += at_once) {
    FT_RETURN_IF_ERROR(
        tensor.read(row_in_file(tensor, row) * file_bytes, at_once * file_bytes, raw.data()));
    for (int64_t i = 0; i < at_once; ++i) {
      split_blocks(*tensor.block, raw.data() + i * file_bytes, k, to);
      to += quantized_row_bytes(*form, k);
    }
  }
  return {};
}

}  // namespace foretoken
