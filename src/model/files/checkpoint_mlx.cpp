#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/files/checkpoint.h"
#include "model/files/containers/json_file.h"
#include "model/files/forms/mlx_layouts.h"
#include "model/files/forms/quantization.h"

// What MLX's tools make of a folder: matrices of their own kind, and other names and forms of some
// tensors.

namespace foretoken {
namespace {

// As MLX has it for the shapes of a matrix: "mxfp4", "mxfp8" and "nvfp4" each have one size of
// codes and groups. Null: none of them.
struct MlxFloats {
  CodeType type;
  const char* codes;
  const char* scales;
};
const MlxFloats* floats_of(const AffineParts& parts) {
  static constexpr MlxFloats kMxfp4{CodeType::kE2m1, "U8", "F8_E8M0"};
  static constexpr MlxFloats kMxfp8{CodeType::kE4m3, "F8_E4M3", "F8_E8M0"};
  static constexpr MlxFloats kNvfp4{CodeType::kE2m1, "U8", "F8_E4M3"};
  const std::vector<int64_t>&codes = parts.codes->shape, &scales = parts.scales->shape;
  if (parts.scales->dtype_name != "U8" || scales.empty() || scales.size() != codes.size()) {
    return nullptr;
  }
  const int64_t groups = scales.back();
  return codes.back() == 4 * groups   ? &kMxfp4
         : codes.back() == 8 * groups ? &kMxfp8
         : codes.back() == 2 * groups ? &kNvfp4
                                      : nullptr;
}

}  // namespace

void Checkpoint::take_names_of_mlx(const MlxLayout* layout) {
  std::map<std::string, const TensorView*> plain;
  for (const auto& [name, tensor] : tensors_) {
    plain.emplace(name_without_mlx(layout != nullptr ? layout->without(name) : name), tensor);
  }
  tensors_ = std::move(plain);
}

void Checkpoint::mark_whole_norms(const MlxLayout* layout) {
  const bool all_are_whole = layout != nullptr && layout->whole_norms;
  if (!all_are_whole && !has_turned_convolutions(tensors_)) return;
  for (auto& [name, tensor] : tensors_) {
    if (all_are_whole ? !name.ends_with("norm.weight") : !is_whole_mlx_norm(name)) continue;
    made_tensors_.push_back(std::make_unique<TensorView>(*tensor));
    made_tensors_.back()->is_whole_norm = true;
    tensor = made_tensors_.back().get();
  }
}

Status Checkpoint::add_mlx_floats(const MlxMatrix& matrix) {
  const MlxFloats* floats = floats_of(matrix.parts);
  if (floats == nullptr) {
    return unsupported(matrix.parts.codes->file + ": the matrix '" + matrix.name +
                       "' has no biases, and its scales, " + matrix.parts.scales->dtype_name + " " +
                       matrix.parts.scales->shape_text() +
                       ", are of no mode of MLX's that is read (affine, mxfp4, mxfp8, nvfp4); "
                       "convert the model to one of them");
  }
  made_tensors_.push_back(
      std::make_unique<TensorView>(with_type(bytes_of_words(*matrix.parts.codes), floats->codes)));
  ScaledParts parts;
  parts.type = floats->type;
  parts.codes = made_tensors_.back().get();
  made_tensors_.push_back(
      std::make_unique<TensorView>(with_type(*matrix.parts.scales, floats->scales)));
  parts.scales = made_tensors_.back().get();
  FT_ASSIGN_OR_RETURN(ScaledTensor scaled, ScaledTensor::create(Quantization{}, parts));
  scaled_.push_back(std::make_unique<ScaledTensor>(std::move(scaled)));
  auto view = std::make_unique<TensorView>();
  view->name = matrix.name;
  view->file = parts.codes->file;
  view->num_bytes = parts.codes->num_bytes + parts.scales->num_bytes;
  view->dtype = FileDType::kOther;
  view->dtype_name = scaled_.back()->type_name();
  view->shape = scaled_.back()->shape();
  view->scaled = scaled_.back().get();
  return add_matrix(std::move(view), matrix.names);
}

Status Checkpoint::add_mlx() {
  const MlxLayout* layout = find_mlx_layout(tensors_);
  take_names_of_mlx(layout);
  mark_whole_norms(layout);
  const bool has_words = std::ranges::any_of(tensors_, [](const auto& entry) {
    return entry.second->dtype_name == "U32" && entry.first.ends_with(".weight");
  });
  if (!has_words) return {};
  FT_ASSIGN_OR_RETURN(const nlohmann::json config, read_config_json(folder_));
  const nlohmann::json* said = mlx_quantization(config);
  FT_ASSIGN_OR_RETURN(const auto found,
                      find_mlx(tensors_, said != nullptr ? *said : nlohmann::json::object()));
  for (const MlxMatrix& matrix : found) {
    if (matrix.parts.biases == nullptr) {
      FT_RETURN_IF_ERROR(add_mlx_floats(matrix));
      continue;
    }
    FT_ASSIGN_OR_RETURN(AffineTensor tensor, AffineTensor::create(matrix.parts, matrix.group));
    affine_.push_back(std::make_unique<AffineTensor>(std::move(tensor)));
    auto view = std::make_unique<TensorView>();
    view->name = matrix.name;
    view->file = matrix.parts.codes->file;
    view->num_bytes = matrix.parts.codes->num_bytes + 2 * matrix.parts.scales->num_bytes;
    view->dtype = FileDType::kOther;
    view->dtype_name = std::to_string(affine_.back()->bits()) + " bits";
    view->shape = affine_.back()->shape();
    view->affine = affine_.back().get();
    FT_RETURN_IF_ERROR(add_matrix(std::move(view), matrix.names));
  }
  return {};
}

}  // namespace foretoken
