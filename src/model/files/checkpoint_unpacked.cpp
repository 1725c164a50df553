#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/files/checkpoint.h"
#include "model/files/containers/json_file.h"
#include "model/files/forms/convert.h"
#include "model/files/forms/quantization.h"
#include "model/files/unpacked_names.h"

// Tensors that a package keeps smaller than their elements, in place of which come these.

namespace foretoken {

Status Checkpoint::add_unpacked() {
  if (!has_unpacked(tensors_)) return {};
  FT_ASSIGN_OR_RETURN(const nlohmann::json config, read_config_json(folder_));
  // Sparse matrices may be no more than that.
  FT_ASSIGN_OR_RETURN(const auto quantization, read_quantization(config, config_path()));
  FT_ASSIGN_OR_RETURN(const auto found,
                      find_unpacked(tensors_, quantization.value_or(Quantization())));
  for (const NamedUnpacked& named : found) {
    FT_ASSIGN_OR_RETURN(auto unpacked, UnpackedTensor::create(named.parts));
    auto view = std::make_unique<TensorView>(unpacked->view(named.name));
    unpacked_.push_back(std::move(unpacked));
    for (const std::string& name : named.names) tensors_.erase(name);
    if (named.marlin_scales != nullptr) {
      FT_RETURN_IF_ERROR(add_marlin_scales(*named.marlin_scales, *view));
    }
    FT_RETURN_IF_ERROR(add_matrix(std::move(view), {}));
  }
  return {};
}

// As X.weight_scale, [rows, groups], beside X.weight_packed.
Status Checkpoint::add_marlin_scales(const TensorView& scales, const TensorView& words) {
  const int64_t rows = words.shape.at(0);
  FT_ASSIGN_OR_RETURN(auto halves, marlin_scales(scales, rows));
  FT_RETURN_IF_ERROR(check_finite(scales));
  made_rows_.push_back(std::make_unique<std::vector<uint16_t>>(std::move(halves)));
  constexpr std::string_view kPacked = "weight_packed";
  auto view = std::make_unique<TensorView>();
  view->name = words.name.substr(0, words.name.size() - kPacked.size()) + "weight_scale";
  view->file = scales.file;
  view->dtype = FileDType::kF16;
  view->dtype_name = "F16";
  view->shape = {rows, scales.shape[0]};
  view->data = reinterpret_cast<const std::byte*>(made_rows_.back()->data());
  view->num_bytes = scales.num_bytes;
  return add_matrix(std::move(view), {});
}

}  // namespace foretoken
