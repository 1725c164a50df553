#include "base/log.h"
#include "model/files/forms/quantized_tensor.h"
#include "model/weights/weight_loader.h"

namespace foretoken {

const TensorView* WeightLoader::in_halves(const TensorView* tensor, int64_t size, bool by_columns) {
  if (tensor == nullptr || size == 0) return tensor;
  const auto [found, added] = in_halves_.try_emplace({tensor, by_columns}, *tensor);
  if (added) (by_columns ? found->second.interleaved_cols : found->second.interleaved_rows) = size;
  return &found->second;
}

// How a tensor can stay quantised without loss; null: it cannot.
Result<const QuantForm*> WeightLoader::kept_form(const std::string& name, const TensorView& tensor,
                                                 int64_t cols) {
  const QuantForm* form = quantized_form(tensor, dtype_);
  if (form == nullptr || !device_.keeps_quantized(*form, cols, dtype_)) return form;
  const auto [found, added] = keeps_values_.try_emplace(name, true);
  if (added) {
    FT_ASSIGN_OR_RETURN(found->second, keeps_values(tensor));
    if (!found->second) {
      FT_LOG(warn,
             "{}: tensor '{}' is widened: not all of its scales fit into the form that stays "
             "quantised",
             tensor.file, tensor.name);
    }
  }
  return found->second ? form : nullptr;
}

void WeightLoader::ignore_all_but(std::span<const std::string> beginnings) {
  if (checkpoint_ == nullptr) return;
  for (const auto& [name, tensor] : checkpoint_->tensors()) {
    const auto begins = [&](const std::string& with) { return name.starts_with(with); };
    if (std::none_of(beginnings.begin(), beginnings.end(), begins)) used_.insert(name);
  }
}

// Codes share their scales in groups, which cannot be divided.
Status WeightLoader::check_cut(std::span<const RowRun> runs, int64_t unit_rows) const {
  if (runs.empty() || !keeps_quantized(runs, runs[0].cols.total, unit_rows)) return {};
  for (const RowRun& run : runs) {
    const QuantForm* form = run.form;
    const ColumnRange& cols = run.cols;
    if (cols.is_whole()) continue;
    const auto fits = [&](int64_t columns) { return columns == 0 || fits_row(*form, columns); };
    if (fits(cols.width()) && fits(cols.first) && fits(cols.apart)) continue;
    const std::string file = run.tensor != nullptr ? run.tensor->file + ": " : "";
    return unsupported(file + "tensor '" + std::string(run.name) + "' is quantised in groups, " +
                       "which a cut of its " + std::to_string(cols.total) + " columns into " +
                       std::to_string(cols.total / cols.count) +
                       " parts would divide; lower --tensor-parallel-size");
  }
  return {};
}

}  // namespace foretoken
