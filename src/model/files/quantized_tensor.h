#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/quantized_rows.h"
#include "base/result.h"
#include "model/files/safetensors.h"

namespace foretoken {

// How the rows of a tensor are quantised in its file, or null where they are not, or where
// what they are cannot be kept.
const QuantForm* quantized_form(const TensorView& tensor);

// Reads rows [first, first + count) of a matrix, whose rows have whole blocks, as
// base/quantized_rows.h lays them out; interleaved rows are put in order. `raw` is scratch. Errors
// as of TensorView::read. Any thread with its own scratch.
Status read_quantized_rows(const TensorView& tensor, int64_t first, int64_t count, std::byte* to,
                           std::vector<std::byte>& raw);

}  // namespace foretoken
