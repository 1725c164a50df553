#include "convert/gguf_conversion.h"

#include <algorithm>
#include <cfloat>
#include <span>

#include "base/check.h"
#include "gguf/blocks/block_encode.h"

namespace foretoken {
namespace {

constexpr int64_t kElementsAtOnce = int64_t{2} << 20;
constexpr float kMaxHalf = 65504;

// What the columns of a tensor count; null where nothing is known of them.
Result<const std::vector<float>*> importance_of(const ConvertOptions& options,
                                                const TensorToEncode& tensor) {
  if (options.importance == nullptr) return static_cast<const std::vector<float>*>(nullptr);
  const std::vector<float>* found = options.importance->find(tensor.entry.name);
  const std::vector<int64_t>& shape = tensor.entry.shape;
  const int64_t matrices = shape.size() > 2 ? shape[0] : 1;
  if (found == nullptr || std::ssize(*found) == shape.back() * matrices) return found;
  return invalid_argument(options.importance->path() + ": '" + tensor.entry.name + "' has " +
                          std::to_string(found->size()) + " columns, not " +
                          std::to_string(shape.back() * matrices) +
                          "; use the importance matrix of this model");
}

// Whether the bytes of the file are what is to be written.
bool is_as_wanted(const TensorToEncode& tensor) {
  return tensor.view->packed == nullptr && tensor.view->scaled == nullptr &&
         tensor.view->affine == nullptr && tensor.turned_head_dim == 0 &&
         tensor.view->interleaved_rows == 0 && tensor.view->dtype_name == tensor.entry.type->name;
}

}  // namespace

Status GgufConversion::run(const GgufKeys& keys, const std::vector<TensorToEncode>& tensors,
                           const GgufTensorEntry& last, const std::vector<float>& last_values) {
  std::vector<GgufTensorEntry> entries;
  for (const TensorToEncode& tensor : tensors) {
    entries.push_back(tensor.entry);
    total_ += tensor.entry.num_bytes();
  }
  if (!last.name.empty()) entries.push_back(last);
  FT_ASSIGN_OR_RETURN(
      writer_, GgufWriter::create(options_.output, keys, std::move(entries), options_.replaces));
  for (const TensorToEncode& tensor : tensors) {
    FT_RETURN_IF_ERROR(is_as_wanted(tensor) ? copy(tensor) : write(tensor));
  }
  if (!last.name.empty()) {
    FT_RETURN_IF_ERROR(writer_->append(std::as_bytes(std::span(last_values))));
  }
  return writer_->finish();
}

Status GgufConversion::copy(const TensorToEncode& tensor) {
  for (int64_t first = 0; first < tensor.view->num_bytes; first += kElementsAtOnce) {
    if (options_.is_cancelled()) return aborted("converting was cancelled");
    const int64_t count = std::min(kElementsAtOnce, tensor.view->num_bytes - first);
    std::vector<std::byte> bytes(static_cast<size_t>(count));
    FT_RETURN_IF_ERROR(tensor.view->read(first, count, bytes.data()));
    FT_RETURN_IF_ERROR(append(bytes));
  }
  return {};
}

Status GgufConversion::write(const TensorToEncode& tensor) {
  const TensorRows rows(*tensor.view, tensor.turned_head_dim);
  const int64_t most = std::max<int64_t>(kElementsAtOnce / std::max<int64_t>(rows.cols(), 1), 1);
  for (int64_t first = 0; first < rows.rows(); first += most) {
    if (options_.is_cancelled()) return aborted("converting was cancelled");
    FT_RETURN_IF_ERROR(write_rows(tensor, rows, first, std::min(most, rows.rows() - first)));
  }
  return {};
}

Status GgufConversion::write_rows(const TensorToEncode& tensor, const TensorRows& rows,
                                  int64_t first, int64_t count) {
  const BlockType& type = *tensor.entry.type;
  const BlockEncode encode = find_block_encode(type);
  FT_ASSIGN_OR_RETURN(const std::vector<float>* importance, importance_of(options_, tensor));
  const std::vector<int64_t>& shape = tensor.entry.shape;
  const int64_t rows_of_matrix = shape.size() > 2 ? rows.rows() / shape[0] : rows.rows();
  const int64_t blocks_per_row = rows.cols() / type.elements;
  const int64_t row_bytes = blocks_per_row * type.bytes;
  const bool wide = type.name == "F32" || type.name == "BF16";
  std::vector<std::byte> bytes(static_cast<size_t>(count * row_bytes));
  const Status encoded = for_slices(count, [&](int64_t begin, int64_t num) -> Status {
    std::vector<float> values(static_cast<size_t>(num * rows.cols()));
    std::vector<std::byte> scratch;
    FT_RETURN_IF_ERROR(
        rows.read(first + begin, num, wide ? FLT_MAX : kMaxHalf, values.data(), scratch));
    std::byte* to = bytes.data() + begin * row_bytes;
    if (importance == nullptr) {
      encode(values.data(), nullptr, num * blocks_per_row, to);
      return {};
    }
    for (int64_t row = 0; row < num; ++row) {
      const int64_t matrix = (first + begin + row) / rows_of_matrix;
      encode(
          values.data() + row * rows.cols(),
          importance->data() + (std::ssize(*importance) > rows.cols() ? matrix : 0) * rows.cols(),
          blocks_per_row, to + row * row_bytes);
    }
    return {};
  });
  FT_RETURN_IF_ERROR(encoded);
  return append(bytes);
}

Status GgufConversion::append(const std::vector<std::byte>& bytes) {
  FT_RETURN_IF_ERROR(writer_->append(bytes));
  done_ += std::ssize(bytes);
  if (options_.progress) options_.progress(done_, total_);
  return {};
}

}  // namespace foretoken
