#include <optional>
#include <string>

#include "model/files/checkpoint.h"
#include "model/files/encoder_names.h"
#include "model/files/forms/convert.h"

namespace foretoken {

Status Checkpoint::take_names_of_encoders() {
  std::optional<std::string> base;
  for (const auto& [name, tensor] : tensors_) {
    if (!base) base = encoder_base(name);
  }
  if (!base) return {};
  const TensorView* kinds = nullptr;
  std::map<std::string, const TensorView*> plain;
  for (const auto& [name, tensor] : tensors_) {
    if (name == *base + kTokenTypes) {
      kinds = tensor;
    } else if (const std::string own = name_without_encoder(*base, name); !own.empty()) {
      plain.emplace(own, tensor);
    }
  }
  tensors_ = std::move(plain);
  if (kinds == nullptr) return {};
  // The row joins a table whose rows are added to every row of words.
  const bool has_positions = tensors_.contains("model.embed_positions.weight");
  const char* table = has_positions ? "model.embed_positions.weight" : "model.embed_tokens.weight";
  const TensorView& rows = *tensors_.at(table);
  const bool fits = rows.shape.size() == 2 && kinds->shape.size() == 2 && kinds->shape[0] > 0 &&
                    kinds->shape[1] == rows.shape[1];
  if (!fits) {
    return invalid_argument(kinds->file + ": the tensor '" + kinds->name + "' has the shape " +
                            kinds->shape_text() + ", which does not fit embeddings of the shape " +
                            rows.shape_text() + "; fetch the file again");
  }
  FT_RETURN_IF_ERROR(check_convertible(*kinds));
  std::vector<float> first(static_cast<size_t>(rows.shape[1]));
  std::vector<std::byte> raw;
  FT_RETURN_IF_ERROR(read_elements(*kinds, 0, rows.shape[1], DType::kF32, first.data(), raw));
  made_.push_back(std::make_unique<MadeTensor>(rows, std::move(first), Making::kShiftedRows));
  made_tensors_.push_back(std::make_unique<TensorView>(made_view(rows, *made_.back())));
  tensors_[table] = made_tensors_.back().get();
  return {};
}

}  // namespace foretoken
