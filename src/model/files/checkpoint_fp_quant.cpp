#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/files/checkpoint.h"
#include "model/files/forms/convert.h"
#include "model/files/fp_quant_names.h"

// Matrices of FP-Quant, turned back so that they multiply rows as they are.

namespace foretoken {

Status Checkpoint::add_fp_quant() {
  FT_ASSIGN_OR_RETURN(const auto found, find_fp_quant(tensors_));
  if (found.empty()) return {};
  FT_ASSIGN_OR_RETURN(const Quantization quantization, read_own_quantization());
  rounds_activations_ = quantization.rounds_activations;
  std::erase_if(tensors_, [](const auto& entry) { return is_fp_quant_range(entry.first); });
  for (const FpQuantMatrix& matrix : found) {
    FT_ASSIGN_OR_RETURN(auto plain, unturned_fp_quant(quantization, matrix));
    FT_ASSIGN_OR_RETURN(auto view, with_turned_columns(std::move(plain), *matrix.turn));
    FT_RETURN_IF_ERROR(add_matrix(std::move(view), matrix.names));
  }
  return {};
}

// The matrix that turned rows are multiplied with.
Result<std::unique_ptr<TensorView>> Checkpoint::unturned_fp_quant(const Quantization& quantization,
                                                                  const FpQuantMatrix& matrix) {
  auto view = std::make_unique<TensorView>(*matrix.codes);
  view->name = matrix.name;
  if (matrix.scales == nullptr) {
    FT_RETURN_IF_ERROR(check_convertible(*view));
    return view;
  }
  made_tensors_.push_back(std::make_unique<TensorView>(
      with_type(*matrix.scales, matrix.is_nvfp4() ? "F8_E4M3" : "U8")));
  ScaledParts parts;
  parts.type = CodeType::kE2m1;
  parts.codes = matrix.codes;
  parts.scales = made_tensors_.back().get();
  parts.factor = matrix.factor;
  parts.divides = true;
  FT_ASSIGN_OR_RETURN(ScaledTensor scaled, ScaledTensor::create(quantization, parts));
  scaled_.push_back(std::make_unique<ScaledTensor>(std::move(scaled)));
  view->dtype = FileDType::kOther;
  view->dtype_name = scaled_.back()->type_name();
  view->shape = scaled_.back()->shape();
  view->scaled = scaled_.back().get();
  return view;
}

// The matrix of `view` [n, k] that multiplies x, where it multiplies x whose groups of columns are
// x's times `turn` [g, g].
Result<std::unique_ptr<TensorView>> Checkpoint::with_turned_columns(
    std::unique_ptr<TensorView> view, const TensorView& turn) {
  FT_RETURN_IF_ERROR(check_convertible(turn));
  const bool is_square = turn.shape.size() == 2 && turn.shape[0] == turn.shape[1];
  const int64_t group = is_square ? turn.shape[0] : 0;
  if (group <= 0 || view->shape.size() != 2 || view->shape[1] % group != 0) {
    return unfit_shape(turn, ", but '" + view->name + "' of shape " + view->shape_text() +
                                 " needs a square whose side divides its columns");
  }
  std::vector<float> square(static_cast<size_t>(group * group));
  FT_RETURN_IF_ERROR(convert_tensor(turn, DType::kF32, square.data()));
  // (x T) W^T is x (W T^T)^T.
  std::vector<float> turned(square.size());
  for (int64_t i = 0; i < group * group; ++i) {
    turned[static_cast<size_t>(i % group * group + i / group)] = square[static_cast<size_t>(i)];
  }
  made_tensors_.push_back(std::move(view));
  const TensorView& plain = *made_tensors_.back();
  made_.push_back(std::make_unique<MadeTensor>(plain, std::move(turned), Making::kTurnedColumns));
  auto made = std::make_unique<TensorView>(made_view(plain, *made_.back()));
  made->dtype_name = plain.dtype_name + " with turned columns";
  return made;
}

}  // namespace foretoken
