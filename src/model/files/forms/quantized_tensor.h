#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/quantized_rows.h"
#include "base/result.h"
#include "device/dtype.h"
#include "model/files/containers/safetensors.h"

namespace foretoken {

// How the rows of a tensor are quantised in its file, or null where they are not, or where
// what they are cannot be kept. F16 counts as codes of 16 bits.
const QuantForm* quantized_form(const TensorView& tensor);

// The same for weights that are multiplied with x of `dtype`: null too for F16 with x of bfloat16,
// for which it is to be rounded.
const QuantForm* quantized_form(const TensorView& tensor, DType dtype);

// The type in which a model of `dtype` keeps a tensor of which it looks up rows: kF16 where the
// file has halves and their values are wanted as floats, else `dtype`.
DType looked_up_dtype(const TensorView& tensor, DType dtype);

// Whether that form holds the values of all elements: of blocks whose scales need not fit into it
// that is looked up in the file. Errors as of TensorView::read.
Result<bool> keeps_values(const TensorView& tensor);

// Reads rows [first, first + count) of a matrix (or of a stack of them), whose rows have whole
// blocks, as
// base/quantized_rows.h lays them out; interleaved rows are put in order. `raw` is scratch. Errors
// as of TensorView::read. Any thread with its own scratch.
Status read_quantized_rows(const TensorView& tensor, int64_t first, int64_t count, std::byte* to,
                           std::vector<std::byte>& raw);

}  // namespace foretoken
