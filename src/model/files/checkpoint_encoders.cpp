#include <optional>
#include <string>
#include <utility>

#include "model/files/checkpoint.h"
#include "model/files/containers/json_file.h"
#include "model/files/encoder_names.h"
#include "model/files/forms/convert.h"

namespace foretoken {

void Checkpoint::put_made(const std::string& name, std::vector<float> row, Making making) {
  const TensorView& plain = *tensors_.at(name);
  made_.push_back(std::make_unique<MadeTensor>(plain, std::move(row), making));
  made_tensors_.push_back(std::make_unique<TensorView>(made_view(plain, *made_.back())));
  tensors_[name] = made_tensors_.back().get();
}

// The first kind's row joins a table whose rows are added to every row of words.
Status Checkpoint::add_kinds_of_texts(const TensorView& kinds) {
  const std::string words = "model.embed_tokens.weight";
  const std::string positions = "model.embed_positions.weight";
  const bool has_positions = tensors_.contains(positions);
  const TensorView& rows = *tensors_.at(has_positions ? positions : words);
  const bool fits = rows.shape.size() == 2 && kinds.shape.size() == 2 && kinds.shape[0] > 0 &&
                    kinds.shape[1] == rows.shape[1];
  if (!fits) {
    return invalid_argument(kinds.file + ": the tensor '" + kinds.name + "' has the shape " +
                            kinds.shape_text() + ", which does not fit embeddings of the shape " +
                            rows.shape_text() + "; fetch the file again");
  }
  FT_RETURN_IF_ERROR(check_convertible(kinds));
  const int64_t cols = kinds.shape[1];
  std::vector<float> values(static_cast<size_t>(kinds.num_elements()));
  std::vector<std::byte> raw;
  FT_RETURN_IF_ERROR(
      read_elements(kinds, 0, kinds.num_elements(), DType::kF32, values.data(), raw));
  const std::vector<float> first(values.begin(), values.begin() + cols);
  put_made(has_positions ? positions : words, first, Making::kShiftedRows);
  FT_ASSIGN_OR_RETURN(const nlohmann::json config, read_config_json(folder_));
  if (!tells_kinds(config) || kinds.shape[0] != 2) return {};
  std::vector<float> more(values.begin() + cols, values.end());
  for (size_t i = 0; i < more.size(); ++i) more[i] -= first[i];
  put_made(words, std::move(more), Making::kDoubledRows);
  return {};
}

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
  return kinds != nullptr ? add_kinds_of_texts(*kinds) : Status();
}

}  // namespace foretoken
