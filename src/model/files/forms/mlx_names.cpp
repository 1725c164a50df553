#include "model/files/forms/mlx_names.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kMatrix = ".weight";
constexpr std::pair<std::string_view, std::string_view> kRenamed[] = {
    {".switch_mlp.fc1.", ".experts.up_proj."},
    {".switch_mlp.fc2.", ".experts.down_proj."},
    {".switch_mlp.", ".experts."},
    {".experts.switch_glu.", ".experts."},
    {".mlp.gate.gate_proj.", ".mlp.gate."},
    {".embed_q.", ".k_b_proj."},
    {".unembed_out.", ".v_b_proj."}};
constexpr std::array<std::string_view, 5> kWholeNorms = {
    ".input_layernorm.weight", ".post_attention_layernorm.weight", "model.norm.weight",
    ".q_norm.weight", ".k_norm.weight"};

// Of the module at `path`, whose own entry goes before that of all. 0: none is named.
int64_t group_of(const Json& quantization, const std::string& path) {
  const auto own = quantization.find(path);
  const Json& said = own != quantization.end() && own->is_object() ? *own : quantization;
  const auto size = said.find("group_size");
  const bool fits =
      size != said.end() && size->is_number_integer() && *size >= 1 && *size <= 1 << 24;
  return fits ? size->get<int64_t>() : 0;
}

}  // namespace

const Json* mlx_quantization(const Json& config) {
  for (const char* name : {"quantization", "quantization_config"}) {
    const auto found = config.find(name);
    const bool is_mlx = found != config.end() && found->is_object() &&
                        found->contains("group_size") && found->contains("bits") &&
                        found->value("quant_method", Json("metal")) == "metal";
    if (is_mlx) return &*found;
  }
  return nullptr;
}

Result<std::vector<MlxMatrix>> find_mlx(const std::map<std::string, const TensorView*>& tensors,
                                        const Json& quantization) {
  std::vector<MlxMatrix> found;
  for (const auto& [name, tensor] : tensors) {
    if (!name.ends_with(kMatrix) || tensor->dtype_name != "U32") continue;
    MlxMatrix& matrix = found.emplace_back();
    matrix.name = name;
    const std::string base = name.substr(0, name.size() - kMatrix.size());
    const auto take = [&](const char* ending) -> const TensorView* {
      const auto other = tensors.find(base + ending);
      if (other == tensors.end()) return nullptr;
      matrix.names.push_back(other->first);
      return other->second;
    };
    matrix.parts = {take(".weight"), take(".scales"), take(".biases")};
    if (matrix.parts.biases == nullptr) matrix.parts.biases = take(".qbiases");
    if (matrix.parts.scales == nullptr) {
      return invalid_argument(tensor->file + ": the quantised matrix '" + name +
                              "' lacks its scales; fetch the checkpoint again");
    }
    if (tensors.contains(base + ".global_scale")) {
      return unsupported(tensor->file + ": the matrix '" + name +
                         "' has a global scale of MLX's, which is not read; quantise it without "
                         "(mlx_lm.convert), or use the unquantised model");
    }
    if (matrix.parts.biases == nullptr) continue;
    const std::string& own = tensor->name;
    matrix.group = group_of(quantization, own.substr(0, own.size() - kMatrix.size()));
    if (matrix.group > 0) continue;
    return invalid_argument(tensor->file + ": the matrix '" + name +
                            "' is quantised as MLX does, but config.json names no 'group_size' in "
                            "'quantization'; fetch the config.json of the model");
  }
  return found;
}

std::string name_without_mlx(const std::string& name) {
  for (const auto& [own, common] : kRenamed) {
    const size_t at = name.find(own);
    if (at == std::string::npos) continue;
    return name.substr(0, at) + std::string(common) + name.substr(at + own.size());
  }
  return name;
}

bool has_turned_convolutions(const std::map<std::string, const TensorView*>& tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [](const auto& entry) {
    const std::vector<int64_t>& shape = entry.second->shape;
    return entry.first.ends_with(".conv1d.weight") && shape.size() == 3 && shape[2] == 1 &&
           shape[1] > 1;
  });
}

bool is_whole_mlx_norm(const std::string& name) {
  return std::any_of(kWholeNorms.begin(), kWholeNorms.end(),
                     [&](std::string_view norm) { return name.ends_with(norm); });
}

TensorView bytes_of_words(const TensorView& words) {
  TensorView bytes = with_type(words, "U8");
  if (!bytes.shape.empty()) bytes.shape.back() *= 4;
  return bytes;
}

TensorView with_type(const TensorView& bytes, const char* dtype_name) {
  TensorView view = bytes;
  view.dtype_name = dtype_name;
  view.dtype = FileDType::kOther;
  return view;
}

}  // namespace foretoken
