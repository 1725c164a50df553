#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "gguf/hf_config.h"
#include "gguf/hf_names.h"
#include "model/files/checkpoint.h"
#include "model/files/forms/convert.h"
#include "model/files/forms/made_tensor.h"

// The tensors of a GGUF file under the names that a folder would have.

namespace foretoken {
namespace {

// What converters write of queries, keys and values as one tensor where folders have three.
constexpr std::string_view kJoined = "self_attn.qkv_proj.weight";

// Rows of a matrix of a file.
TensorView rows_of(const TensorView& whole, int64_t first, int64_t count) {
  TensorView part = whole;
  const int64_t row_bytes = whole.num_bytes / whole.shape[0];
  part.shape[0] = count;
  part.data += first * row_bytes;
  part.file_offset += first * row_bytes;
  part.num_bytes = count * row_bytes;
  return part;
}

// Layers of draft modules behind the model's, where these are not read.
Result<int64_t> num_left_out(const GgufFile& file, const GgufArchitecture& architecture) {
  if (reads_modules(architecture)) return 0;
  FT_ASSIGN_OR_RETURN(const auto modules,
                      file.integer(std::string(architecture.name) + ".nextn_predict_layers"));
  return modules.value_or(0);
}

}  // namespace

// Of bitnet.cpp's ternary matrices, which have one scale behind all rows.
Result<std::unique_ptr<TensorView>> Checkpoint::scaled_gguf_view(const GgufTensor& tensor) {
  auto view = std::make_unique<TensorView>(gguf_tensor_view(tensor));
  if (gguf_tail_bytes(*tensor.type) == 0) return view;
  float scale = 0;
  std::memcpy(&scale, view->data + view->num_bytes, sizeof scale);
  if (!std::isfinite(scale) || view->shape.size() != 2) {
    return invalid_argument(folder_ + ": the tensor '" + view->name +
                            "' has no finite scale behind its rows; fetch the file again");
  }
  made_tensors_.push_back(std::move(view));
  const TensorView& plain = *made_tensors_.back();
  made_.push_back(
      std::make_unique<MadeTensor>(plain, std::vector<float>{scale}, Making::kScaledMatrices));
  return std::make_unique<TensorView>(made_view(plain, *made_.back()));
}

// How many heads of keys a layer has follows from the rows.
Status Checkpoint::divide_projections(const std::string& name, const TensorView& joined,
                                      const nlohmann::json& config) {
  const auto head_dim = config["head_dim"].get<int64_t>();
  const int64_t value_dim = config.value("v_head_dim", head_dim);
  const int64_t queries = config["num_attention_heads"].get<int64_t>() * head_dim;
  const int64_t rest = (joined.shape.size() == 2 ? joined.shape[0] : 0) - queries;
  const int64_t each = head_dim + value_dim;
  if (rest <= 0 || each <= 0 || rest % each != 0) {
    return invalid_argument(folder_ + ": the tensor '" + joined.name + "' has the shape " +
                            joined.shape_text() + ", which are no rows of queries, keys and " +
                            "values; convert the model again");
  }
  const std::string before = name.substr(0, name.size() - kJoined.size()) + "self_attn.";
  const int64_t keys = rest / each * head_dim;
  for (const auto& [part, first, count] :
       {std::tuple("q_proj.weight", int64_t{0}, queries),
        std::tuple("k_proj.weight", queries, keys),
        std::tuple("v_proj.weight", queries + keys, rest - keys)}) {
    made_tensors_.push_back(std::make_unique<TensorView>(rows_of(joined, first, count)));
    tensors_.emplace(before + part, made_tensors_.back().get());
  }
  return {};
}

Status Checkpoint::with_own_fields(const Status& status) const {
  return gguf_ != nullptr ? with_gguf_keys(*gguf_, status) : status;
}

// Tensors that no folder has keep their names: whoever loads the model finds no use for them.
Status Checkpoint::add_gguf(const ModelFiles& model) {
  FT_ASSIGN_OR_RETURN(gguf_, model.gguf());
  FT_ASSIGN_OR_RETURN(architecture_, gguf_architecture(*gguf_));
  FT_ASSIGN_OR_RETURN(const nlohmann::json config, gguf_model_config(*gguf_));
  const auto num_layers = config["num_hidden_layers"].get<int64_t>();
  FT_ASSIGN_OR_RETURN(const int64_t behind, num_left_out(*gguf_, *architecture_));
  for (const auto& [name, tensor] : gguf_->tensors()) {
    if (is_config_tensor(*architecture_, name) || is_media_tensor(name)) continue;
    const int64_t layer = layer_of_tensor(name);
    if (layer >= num_layers && layer < num_layers + behind) continue;
    const std::string hf_name = hf_tensor_name(*architecture_, name, num_layers).value_or(name);
    FT_ASSIGN_OR_RETURN(auto view, scaled_gguf_view(tensor));
    if (architecture_->joins_projections && hf_name.ends_with(kJoined)) {
      FT_RETURN_IF_ERROR(divide_projections(hf_name, *view, config));
      continue;
    }
    const bool turns = hf_name.find(".q_proj.") != std::string::npos ||
                       hf_name.find(".k_proj.") != std::string::npos;
    if (turns && architecture_->interleaves_heads) {
      FT_RETURN_IF_ERROR(interleave(config["head_dim"], view.get()));
    }
    constexpr std::string_view kNorm = "norm.weight";
    const bool is_norm = hf_name.ends_with(kNorm) || name.ends_with(kNorm);
    view->is_whole_norm = architecture_->whole_norms && is_norm;
    tensors_.emplace(hf_name, view.get());
    made_tensors_.push_back(std::move(view));
  }
  for (const GgufName& number : architecture_->numbers) {
    FT_RETURN_IF_ERROR(add_numbers(number, num_layers));
  }
  // Of encoders.
  if (const auto kinds = tensors_.extract("token_types.weight")) {
    FT_RETURN_IF_ERROR(add_kinds_of_texts(*kinds.mapped(), nullptr));
  }
  return add_gguf_scales();
}

// What llama.cpp multiplies products of a matrix with: the second scale of NVFP4's checkpoints.
// Activations, which have one too, are not rounded.
Status Checkpoint::add_gguf_scales() {
  constexpr std::string_view kScale = ".scale", kOfInputs = ".input_scale";
  std::erase_if(tensors_, [&](const auto& entry) { return entry.first.ends_with(kOfInputs); });
  std::vector<std::string> scales;
  for (const auto& [name, tensor] : tensors_) {
    if (name.ends_with(kScale)) scales.push_back(name);
  }
  for (const std::string& name : scales) {
    const std::string base = name.substr(0, name.size() - kScale.size());
    const auto matrix = tensors_.find(base + ".weight");
    if (matrix == tensors_.end()) continue;
    const TensorView& scale = *tensors_[name];
    const TensorView& plain = *matrix->second;
    const bool of_experts = plain.shape.size() == 3;
    const int64_t count = of_experts ? plain.shape[0] : 1;
    if (scale.dtype != FileDType::kF32 || scale.num_elements() != count || plain.shape.size() > 3 ||
        plain.shape.size() < 2) {
      return unsupported(folder_ + ": the tensor '" + scale.name +
                         "' is not one number of F32 for each matrix of '" + plain.name +
                         "'; convert the model again");
    }
    FT_RETURN_IF_ERROR(check_finite(scale));
    std::vector<float> numbers(static_cast<size_t>(count));
    FT_RETURN_IF_ERROR(scale.read(0, count * int64_t{sizeof(float)}, numbers.data()));
    made_.push_back(std::make_unique<MadeTensor>(plain, numbers, Making::kScaledMatrices));
    made_tensors_.push_back(std::make_unique<TensorView>(made_view(plain, *made_.back())));
    matrix->second = made_tensors_.back().get();
    tensors_.erase(name);
  }
  return {};
}

// A number of the metadata for each layer, as a tensor of one element.
Status Checkpoint::add_numbers(const GgufName& number, int64_t num_layers) {
  const std::string key(number.gguf);
  if (gguf_->find(key) == nullptr) {
    return invalid_argument(folder_ + ": '" + key + "' is missing; convert the model again");
  }
  if (num_layers > std::ssize(gguf_->tensors())) {
    return invalid_argument(folder_ + ": there are fewer tensors than its " +
                            std::to_string(num_layers) + " layers; convert the model again");
  }
  std::vector<double> values;
  if (const auto one = gguf_->number(key); one.ok() && one.value()) {
    values.assign(static_cast<size_t>(num_layers), *one.value());
  } else {
    FT_ASSIGN_OR_RETURN(values, gguf_->numbers(key));
  }
  if (std::ssize(values) != num_layers) {
    return invalid_argument(folder_ + ": '" + key + "' has " + std::to_string(values.size()) +
                            " numbers, but there are " + std::to_string(num_layers) +
                            " layers; convert the model again");
  }
  for (int64_t layer = 0; layer < num_layers; ++layer) {
    made_numbers_.push_back(
        std::make_unique<float>(static_cast<float>(values[static_cast<size_t>(layer)])));
    auto view = std::make_unique<TensorView>();
    view->name = key;
    view->file = folder_;
    view->dtype_name = "F32";
    view->shape = {1};
    view->data = reinterpret_cast<const std::byte*>(made_numbers_.back().get());
    view->num_bytes = sizeof(float);
    tensors_.emplace(
        std::string(architecture_->layers) + std::to_string(layer) + "." + std::string(number.hf),
        view.get());
    made_tensors_.push_back(std::move(view));
  }
  return {};
}

}  // namespace foretoken
