#include <algorithm>
#include <array>
#include <cstdio>

#include "model/files/forms/quantized_tensor.h"
#include "model/weights/weight_loader.h"

namespace foretoken {
namespace {

// As all architectures name them.
bool is_plain_of_layer(const TensorView& tensor, const std::string& name) {
  const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
  return tensor.dtype != FileDType::kOther && (has("layers.") || has(".h.") || has(".blocks."));
}

}  // namespace

int64_t WeightLoader::quantized_saving(const Device& device, const Checkpoint& checkpoint,
                                       DType dtype, WeightRounding rounding,
                                       const std::function<bool(const std::string& name)>& counts) {
  int64_t saved = 0;
  for (const auto& [name, tensor] : checkpoint.tensors()) {
    const QuantForm* form = quantized_form(*tensor, dtype);
    if (form == nullptr && rounding == WeightRounding::kFp8 && is_plain_of_layer(*tensor, name)) {
      form = &RoundedTensor::kRows;
    }
    const bool is_stack =
        tensor->shape.size() == 3 &&
        (tensor->block != nullptr || tensor->scaled != nullptr || tensor->affine != nullptr);
    if (form == nullptr || (tensor->shape.size() != 2 && !is_stack) || !counts(name)) continue;
    const int64_t k = tensor->shape.back();
    const bool is_of_experts = is_stack || name.find(".experts.") != std::string::npos;
    const QuantizedPart part = {*form, tensor->shape[0]};
    if (!device.keeps_quantized(*form, k, dtype) ||
        !device.keeps_together({&part, 1}, is_of_experts ? part.num_rows : 0)) {
      continue;
    }
    saved += tensor->shape[0] * (is_stack ? tensor->shape[1] : 1) *
             (k * static_cast<int64_t>(dtype_size(dtype)) - packed_row_bytes(*form, k));
  }
  return saved;
}

WeightLoader::MadeMatrix::MadeMatrix(const TensorView& plain, Making making)
    : tensor(plain, making), view(made_view(plain, tensor)) {}
WeightLoader::MadeMatrix::MadeMatrix(const TensorView& plain, Making making, const Padding& padding)
    : tensor(plain, making, padding), view(made_view(plain, tensor)) {}

// The tensor of a matrix, or one that is read from it in its place.
Result<const TensorView*> WeightLoader::find_matrix(const TensorPart& part,
                                                    std::span<const int64_t> shape) {
  const PaddedHeads& padded = part.padded;
  std::vector<int64_t> of_file(shape.begin(), shape.end());
  if (padded.to > 0) {
    int64_t& extent = of_file[padded.of_columns ? 1 : 0];
    extent = extent / padded.to * padded.from;
  }
  FT_ASSIGN_OR_RETURN(const TensorView* tensor, find_weights(part.name, of_file));
  if (padded.to > 0 && tensor != nullptr) {
    const auto making = padded.of_columns ? Making::kPaddedColumns : Making::kPaddedRows;
    const Padding padding{padded.from, padded.to, padded.scale};
    std::unique_ptr<MadeMatrix>& made = made_[{tensor, padded.scale}];
    if (made == nullptr) made = std::make_unique<MadeMatrix>(*tensor, making, padding);
    return &made->view;
  }
  if (part.unit_rows && tensor != nullptr) {
    std::unique_ptr<MadeMatrix>& made = made_[{tensor, 1.0f}];
    if (made == nullptr) made = std::make_unique<MadeMatrix>(*tensor, Making::kUnitRows);
    return &made->view;
  }
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

// Rows are rounded once for all that is one product, so that the largest scale counts.
Result<float> WeightLoader::input_scale_of_all(std::span<const RowRun> runs) const {
  float largest = 0;
  for (const RowRun& run : runs) {
    const float own = run.tensor != nullptr ? run.tensor->input_scale : 0;
    if (own > 0) {
      largest = std::max(largest, own);
      continue;
    }
    return unsupported((run.tensor != nullptr ? run.tensor->file + ": " : std::string()) +
                       "the FP8 matrix '" + std::string(run.name) +
                       "' has no input_scale of its own, by which its rows could be rounded; take "
                       "scales from the rows themselves (--activation-scheme dynamic)");
  }
  return largest;
}

Status WeightLoader::note_rounded(std::span<const RowRun> runs, int64_t cols,
                                  PackedWeight& weight) {
  float input_scale = 0;
  if (has_static_scales_) {
    FT_ASSIGN_OR_RETURN(input_scale, input_scale_of_all(runs));
  }
  weight.take_rounded(input_scale);
  ++num_rounded_;
  need_rounded(cols);
  return {};
}

Result<PackedWeight> WeightLoader::repeated(std::vector<float> matrix, int64_t cols,
                                            int64_t times) {
  HostMatrix& kept = *host_matrices_.emplace_back(std::make_unique<HostMatrix>());
  kept.values = std::move(matrix);
  const int64_t rows = std::ssize(kept.values) / cols;
  TensorView& view = kept.view;
  view.name = view.file = "what follows from small tensors";
  view.shape = {rows, cols};
  view.data = reinterpret_cast<const std::byte*>(kept.values.data());
  view.num_bytes = std::ssize(kept.values) * static_cast<int64_t>(sizeof(float));
  const RowRun run{view.name, &view, 0, rows, {cols, 0, cols}, nullptr};
  const std::vector<RowRun> runs(static_cast<size_t>(times), run);
  return load_rows(runs, cols, WeightOrder::kPlain, rows);
}

void WeightLoader::note_widened(std::span<const RowRun> runs) {
  for (const RowRun& run : runs) {
    const TensorView* tensor = run.tensor;
    const bool is_quantized =
        tensor != nullptr &&
        (tensor->block != nullptr || tensor->packed != nullptr || tensor->scaled != nullptr ||
         tensor->affine != nullptr || tensor->bnb != nullptr || tensor->rounded != nullptr ||
         tensor->float_zeros != nullptr ||
         (tensor->made != nullptr && tensor->made->is_quantized()));
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
