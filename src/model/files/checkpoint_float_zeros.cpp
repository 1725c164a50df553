#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/files/checkpoint.h"
#include "model/files/forms/convert.h"
#include "model/files/forms/torchao_names.h"

// Matrices of HQQ and torchao, and numbers that the columns of a quantised matrix are multiplied
// with.

namespace foretoken {

// The matrix of `view` times a number for each of its columns. Whoever multiplies with it
// multiplies plain rows.
Result<std::unique_ptr<TensorView>> Checkpoint::with_column_scales(std::unique_ptr<TensorView> view,
                                                                   const TensorView& scales) {
  FT_RETURN_IF_ERROR(check_convertible(scales));
  if (view->shape.size() != 2 || scales.num_elements() != view->shape[1]) {
    return unfit_shape(scales, ", but '" + view->name + "' of shape " + view->shape_text() +
                                   " needs a number for each column");
  }
  FT_RETURN_IF_ERROR(check_finite(scales));
  std::vector<float> columns(static_cast<size_t>(view->shape[1]));
  FT_RETURN_IF_ERROR(convert_tensor(scales, DType::kF32, columns.data()));
  made_tensors_.push_back(std::move(view));
  const TensorView& plain = *made_tensors_.back();
  made_.push_back(std::make_unique<MadeTensor>(plain, std::move(columns)));
  auto scaled = std::make_unique<TensorView>(made_view(plain, *made_.back()));
  scaled->dtype_name = plain.dtype_name + " with scales of columns";
  return scaled;
}

// Of torchao's other matrices names alone are special.
Status Checkpoint::add_float_zeros() {
  FT_ASSIGN_OR_RETURN(const auto found, find_float_zeros(tensors_));
  if (!found.empty()) FT_RETURN_IF_ERROR(read_own_quantization().status());
  for (const FloatZeroParts& parts : found) {
    FT_ASSIGN_OR_RETURN(FloatZeroTensor tensor, FloatZeroTensor::create(parts));
    float_zeros_.push_back(std::make_unique<FloatZeroTensor>(std::move(tensor)));
    auto view = std::make_unique<TensorView>();
    view->name = parts.name;
    view->file = parts.codes->file;
    view->num_bytes = parts.codes->num_bytes + parts.scales->num_bytes + parts.zeros->num_bytes;
    view->dtype = FileDType::kOther;
    view->dtype_name = std::to_string(float_zeros_.back()->bits()) + " bits with float zeros";
    view->shape = float_zeros_.back()->shape();
    view->float_zeros = float_zeros_.back().get();
    if (parts.column_scales != nullptr) {
      FT_ASSIGN_OR_RETURN(view, with_column_scales(std::move(view), *parts.column_scales));
    }
    FT_RETURN_IF_ERROR(add_matrix(std::move(view), parts.names));
  }
  FT_RETURN_IF_ERROR(check_torchao(tensors_));
  std::map<std::string, const TensorView*> plain;
  for (const auto& [name, tensor] : tensors_) plain.emplace(name_without_torchao(name), tensor);
  tensors_ = std::move(plain);
  return {};
}

}  // namespace foretoken
