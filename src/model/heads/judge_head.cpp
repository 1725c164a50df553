#include "model/heads/judge_head.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "gguf/model_texts.h"
#include "model/files/checkpoint.h"
#include "model/files/containers/json_file.h"
#include "model/files/forms/convert.h"

namespace foretoken {
namespace {

bool is_judge(const nlohmann::json& config) {
  const auto names = config.find("architectures");
  if (names == config.end() || !names->is_array() || names->empty()) return false;
  if (!(*names)[0].is_string()) return false;
  const auto name = (*names)[0].get<std::string>();
  return name.ends_with("ForSequenceClassification") || name.ends_with("ForRewardModel");
}

Result<std::vector<float>> read_floats(const TensorView& tensor) {
  FT_RETURN_IF_ERROR(check_convertible(tensor));
  std::vector<float> values(static_cast<size_t>(tensor.num_elements()));
  std::vector<std::byte> raw;
  FT_RETURN_IF_ERROR(
      read_elements(tensor, 0, tensor.num_elements(), DType::kF32, values.data(), raw));
  return values;
}

}  // namespace

Status JudgeHead::add_layer(const Checkpoint& files, const char* name, After after) {
  FT_ASSIGN_OR_RETURN(const TensorView* matrix, files.find(std::string(name) + ".weight"));
  const int32_t inputs = layers_.empty() ? 0 : layers_.back().outputs;
  const bool fits = matrix->shape.size() == 2 && matrix->shape[0] > 0 &&
                    (inputs == 0 || matrix->shape[1] == inputs);
  if (!fits) {
    return invalid_argument(matrix->file + ": the tensor '" + matrix->name + "' has the shape " +
                            matrix->shape_text() + ", which does not fit what is before it; " +
                            "fetch the file again");
  }
  Layer layer;
  layer.outputs = static_cast<int32_t>(matrix->shape[0]);
  layer.inputs = static_cast<int32_t>(matrix->shape[1]);
  layer.after = after;
  FT_ASSIGN_OR_RETURN(layer.matrix, read_floats(*matrix));
  if (const auto bias = files.find(std::string(name) + ".bias"); bias.ok()) {
    FT_ASSIGN_OR_RETURN(layer.bias, read_floats(*bias.value()));
    if (std::ssize(layer.bias) != layer.outputs) {
      return invalid_argument(matrix->file + ": the tensor '" + std::string(name) +
                              ".bias' does not fit its matrix; fetch the file again");
    }
  }
  layers_.push_back(std::move(layer));
  return {};
}

Result<std::optional<JudgeHead>> JudgeHead::load(const ModelFiles& model, int32_t hidden_size) {
  if (model.is_gguf() || !has_model_text(model, "config.json")) return std::optional<JudgeHead>();
  FT_ASSIGN_OR_RETURN(const nlohmann::json config, read_config_json(model));
  if (!is_judge(config)) return std::optional<JudgeHead>();
  constexpr Form kForms[] = {{"classifier.dense", "classifier.out_proj", After::kTanh},
                             {"pooler.dense", "classifier", After::kTanh},
                             {"pre_classifier", "classifier", After::kRelu},
                             {"score.0", "score.2", After::kRelu},
                             {nullptr, "classifier", After::kNothing},
                             {nullptr, "score", After::kNothing}};
  FT_ASSIGN_OR_RETURN(const Checkpoint files, Checkpoint::open(model));
  const auto has = [&](const char* name) {
    return name == nullptr || files.find(std::string(name) + ".weight").ok();
  };
  for (const Form& form : kForms) {
    if (!has(form.first) || !has(form.last)) continue;
    JudgeHead head;
    if (form.first != nullptr) {
      FT_RETURN_IF_ERROR(head.add_layer(files, form.first, form.between));
    }
    FT_RETURN_IF_ERROR(head.add_layer(files, form.last, After::kNothing));
    if (head.layers_.front().inputs == hidden_size) return std::optional(std::move(head));
  }
  return not_found(model.text() +
                   " lacks the matrices that judge a text (classifier.weight or score.weight); "
                   "the weights do not belong to its config.json, or a shard is missing");
}

std::vector<float> JudgeHead::judge(std::span<const float> state) const {
  std::vector<float> x(state.begin(), state.end());
  for (const Layer& layer : layers_) {
    std::vector<float> y(static_cast<size_t>(layer.outputs));
    for (size_t row = 0; row < y.size(); ++row) {
      double sum = layer.bias.empty() ? 0 : layer.bias[row];
      const float* weights = layer.matrix.data() + row * x.size();
      for (size_t i = 0; i < x.size(); ++i) sum += double{weights[i]} * x[i];
      if (layer.after == After::kTanh) sum = std::tanh(sum);
      if (layer.after == After::kRelu) sum = std::max(sum, 0.0);
      y[row] = static_cast<float>(sum);
    }
    x = std::move(y);
  }
  return x;
}

}  // namespace foretoken
