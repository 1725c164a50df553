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

namespace {

// All rows of a small table that is added to another one.
Result<std::vector<float>> rows_of_kinds(const TensorView& kinds, const TensorView& rows) {
  const bool fits = rows.shape.size() == 2 && kinds.shape.size() == 2 && kinds.shape[0] > 0 &&
                    kinds.shape[1] == rows.shape[1];
  if (!fits) {
    return invalid_argument(kinds.file + ": the tensor '" + kinds.name + "' has the shape " +
                            kinds.shape_text() + ", which does not fit embeddings of the shape " +
                            rows.shape_text() + "; fetch the file again");
  }
  FT_RETURN_IF_ERROR(check_convertible(kinds));
  std::vector<float> values(static_cast<size_t>(kinds.num_elements()));
  std::vector<std::byte> raw;
  FT_RETURN_IF_ERROR(
      read_elements(kinds, 0, kinds.num_elements(), DType::kF32, values.data(), raw));
  return values;
}

}  // namespace

// The first kind's row, and the first task's, join a table whose rows are added to every row of
// words.
Status Checkpoint::add_kinds_of_texts(const TensorView& kinds, const TensorView* tasks) {
  const std::string words = "model.embed_tokens.weight";
  const std::string positions = "model.embed_positions.weight";
  const bool has_positions = tensors_.contains(positions);
  const auto table = tensors_.find(has_positions ? positions : words);
  if (table == tensors_.end()) {
    return invalid_argument(kinds.file + ": the tensor '" + kinds.name +
                            "' tells texts of pairs apart, but its model is no encoder of those; "
                            "convert the model again");
  }
  const TensorView& rows = *table->second;
  FT_ASSIGN_OR_RETURN(const std::vector<float> values, rows_of_kinds(kinds, rows));
  const auto cols = static_cast<size_t>(kinds.shape[1]);
  std::vector<float> first(values.begin(), values.begin() + kinds.shape[1]);
  if (tasks != nullptr) {
    FT_ASSIGN_OR_RETURN(const std::vector<float> of_tasks, rows_of_kinds(*tasks, rows));
    for (size_t i = 0; i < cols; ++i) first[i] += of_tasks[i];
  }
  put_made(has_positions ? positions : words, std::move(first), Making::kShiftedRows);
  FT_ASSIGN_OR_RETURN(const nlohmann::json config, read_config_json(folder_));
  if (!tells_kinds(config) || kinds.shape[0] != 2 || !tensors_.contains(words)) return {};
  std::vector<float> more(values.begin() + kinds.shape[1], values.end());
  for (size_t i = 0; i < cols; ++i) more[i] -= values[i];
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
  const TensorView* tasks = nullptr;
  std::map<std::string, const TensorView*> plain;
  for (const auto& [name, tensor] : tensors_) {
    const std::string own = name_without_encoder(*base, name);
    if (own == kTokenTypes) {
      kinds = tensor;
    } else if (own == kTaskTypes) {
      tasks = tensor;
    } else if (!own.empty()) {
      plain.emplace(own, tensor);
    }
  }
  tensors_ = std::move(plain);
  return kinds != nullptr ? add_kinds_of_texts(*kinds, tasks) : Status();
}

}  // namespace foretoken
