#include <algorithm>

#include "device/device_traits.h"
#include "model/files/forms/quantized_tensor.h"
#include "model/weights/weight_loader.h"

namespace foretoken {

// Random ones are of the model's type.
Result<void*> WeightLoader::read_table(Arena& arena, const std::string& name,
                                       const TensorView* tensor, const TableShape& shape) {
  const auto element = static_cast<int64_t>(dtype_size(shape.dtype));
  const int64_t count = shape.rows * shape.cols;
  FT_ASSIGN_OR_RETURN(void* memory,
                      arena.take(static_cast<size_t>(count * element), "the embedding table"));
  const int64_t most = tensor != nullptr ? stream_->piece_bytes() / element : count;
  for (int64_t first = 0; first < count; first += most) {
    const int64_t here = std::min(most, count - first);
    void* to = static_cast<std::byte*>(memory) + first * element;
    if (tensor == nullptr) {
      make_random(name, first, here, shape.cols, to);
      continue;
    }
    WeightPiece piece;
    piece.runs = {{tensor, first, here}};
    piece.counted_bytes = here * element;
    piece.dtype = shape.dtype;
    piece.to = to;
    FT_RETURN_IF_ERROR(stream_->add(std::move(piece)));
  }
  count_tensor(count * element);
  return memory;
}

Result<RowTable> WeightLoader::table(Arena& arena, const std::string& name, int64_t rows,
                                     int64_t cols, int64_t file_rows) {
  const int64_t shape[] = {file_rows > 0 ? file_rows : rows, cols};
  FT_ASSIGN_OR_RETURN(const TensorView* tensor, find_weights(name, shape));
  const DType dtype = tensor != nullptr ? looked_up_dtype(*tensor, dtype_) : dtype_;
  FT_ASSIGN_OR_RETURN(const void* memory, read_table(arena, name, tensor, {rows, cols, dtype}));
  return RowTable{memory, dtype};
}

bool WeightLoader::keeps_table(const Device& device, const TensorView& tensor, int64_t cols,
                               DType dtype) {
  const QuantForm* form = quantized_form(tensor, dtype);
  return form != nullptr && form->scale != GroupScale::kNone &&
         device_traits(device.type()).lends_rows && device.keeps_quantized(*form, cols, dtype);
}

Result<LookUpTable> WeightLoader::kept_table(Arena& arena, const std::string& name, int64_t rows,
                                             int64_t cols, int64_t file_rows) {
  const int64_t shape[] = {file_rows > 0 ? file_rows : rows, cols};
  FT_ASSIGN_OR_RETURN(const TensorView* tensor, find_weights(name, shape));
  if (tensor != nullptr && keeps_table(device_, *tensor, cols, dtype_)) {
    FT_ASSIGN_OR_RETURN(const QuantForm* form, kept_form(name, *tensor, cols));
    if (form != nullptr) {
      const TensorPart all{name, shape[0], 0, rows};
      FT_ASSIGN_OR_RETURN(PackedWeight weight, matrix({&all, 1}, {cols, 0, cols}));
      const RowTable lent = weight.rows();
      return LookUpTable{lent, std::make_shared<PackedWeight>(std::move(weight))};
    }
  }
  FT_ASSIGN_OR_RETURN(const RowTable in_arena, this->table(arena, name, rows, cols, file_rows));
  return LookUpTable{in_arena, {}};
}

Result<const void*> WeightLoader::plain_table(Arena& arena, const std::string& name, int64_t rows,
                                              int64_t cols) {
  const int64_t shape[] = {rows, cols};
  FT_ASSIGN_OR_RETURN(const TensorView* tensor, find_weights(name, shape));
  FT_ASSIGN_OR_RETURN(const void* memory, read_table(arena, name, tensor, {rows, cols, dtype_}));
  return memory;
}

}  // namespace foretoken
