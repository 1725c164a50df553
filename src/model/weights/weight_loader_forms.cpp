#include <array>
#include <cstdio>

#include "model/weights/weight_loader.h"

namespace foretoken {

// The tensor of a matrix, or one that is read from it in its place.
Result<const TensorView*> WeightLoader::find_matrix(const TensorPart& part,
                                                    std::span<const int64_t> shape) {
  FT_ASSIGN_OR_RETURN(const TensorView* tensor, find_weights(part.name, shape));
  const bool rounds = in_layers_ && rounding_ == WeightRounding::kFp8 && !part.is_exact &&
                      tensor != nullptr && tensor->dtype != FileDType::kOther &&
                      tensor->shape.size() >= 2;
  if (!rounds) return tensor;
  std::unique_ptr<RoundedMatrix>& known = rounded_[tensor];
  if (known == nullptr) {
    const auto channels = part.columns_are_outputs ? Fp8Channels::kColumns : Fp8Channels::kRows;
    FT_ASSIGN_OR_RETURN(RoundedTensor rounded, RoundedTensor::create(*tensor, channels));
    known = std::make_unique<RoundedMatrix>(RoundedMatrix{std::move(rounded), *tensor});
    TensorView& view = known->view;
    view.rounded = &known->tensor;
    view.dtype = FileDType::kOther;
    view.dtype_name = "FP8";
    view.data = nullptr;
    view.num_bytes = tensor->num_elements();
    view.interleaved_rows = 0;
  }
  return &known->view;
}

void WeightLoader::note_widened(std::span<const RowRun> runs) {
  for (const RowRun& run : runs) {
    const TensorView* tensor = run.tensor;
    const bool is_quantized =
        tensor != nullptr &&
        (tensor->block != nullptr || tensor->packed != nullptr || tensor->scaled != nullptr ||
         tensor->bnb != nullptr || tensor->rounded != nullptr);
    if (!is_quantized) continue;
    const int64_t count = run.num_rows * run.cols.count;
    widened_from_ += static_cast<double>(count) * static_cast<double>(tensor->num_bytes) /
                     static_cast<double>(tensor->num_elements());
    widened_to_ += bytes_of(count);
    widened_[tensor->dtype_name].insert(std::string(run.name));
  }
}

std::string WeightLoader::widened() const {
  std::string text;
  for (const auto& [type, names] : widened_) {
    text += (text.empty() ? "" : ", ") + std::to_string(names.size()) + " of " + type;
  }
  if (text.empty()) return text;
  const auto gibibytes = [](double bytes) {
    std::array<char, 32> digits;
    std::snprintf(digits.data(), digits.size(), "%.2f", bytes / (1 << 30));
    return std::string(digits.data());
  };
  return text + "; " + gibibytes(static_cast<double>(widened_to_)) + " GiB instead of " +
         gibibytes(widened_from_);
}

}  // namespace foretoken
