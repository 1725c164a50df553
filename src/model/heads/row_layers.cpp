#include "model/heads/row_layers.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/files/checkpoint.h"
#include "model/files/forms/convert.h"

namespace foretoken {
namespace {

constexpr size_t kInputsAtOnce = 64;  // whose products are summed as floats

Result<std::vector<float>> read_floats(const TensorView& tensor) {
  FT_RETURN_IF_ERROR(check_convertible(tensor));
  std::vector<float> values(static_cast<size_t>(tensor.num_elements()));
  std::vector<std::byte> raw;
  FT_RETURN_IF_ERROR(
      read_elements(tensor, 0, tensor.num_elements(), DType::kF32, values.data(), raw));
  return values;
}

Status misfit(const TensorView& tensor) {
  return invalid_argument(tensor.file + ": the tensor '" + tensor.name + "' has the shape " +
                          tensor.shape_text() + ", which does not fit what is before it; " +
                          "fetch the file again");
}

// [size], where there is one.
Status read_vector(const Checkpoint& files, const std::string& name, int32_t size,
                   std::vector<float>* out) {
  const auto found = files.find(name);
  if (!found.ok()) return {};
  if (found.value()->num_elements() != size) return misfit(*found.value());
  FT_ASSIGN_OR_RETURN(*out, read_floats(*found.value()));
  return {};
}

// [rows, cols] of `values` as [cols, rows].
std::vector<float> transposed(const std::vector<float>& values, size_t rows, size_t cols) {
  std::vector<float> out(values.size());
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < cols; ++c) out[c * rows + r] = values[r * cols + c];
  }
  return out;
}

void norm_row(std::span<double> y, double eps) {
  double mean = 0, variance = 0;
  for (const double v : y) mean += v / static_cast<double>(y.size());
  for (const double v : y) variance += (v - mean) * (v - mean) / static_cast<double>(y.size());
  for (double& v : y) v = (v - mean) / std::sqrt(variance + eps);
}

}  // namespace

Status RowLayers::add(const Checkpoint& files, const std::string& name, After after) {
  FT_ASSIGN_OR_RETURN(const TensorView* matrix, files.find(name + ".weight"));
  const bool fits = matrix->shape.size() == 2 && matrix->shape[0] > 0 && matrix->shape[1] > 0 &&
                    (layers_.empty() || matrix->shape[1] == outputs());
  if (!fits) return misfit(*matrix);
  Layer layer;
  layer.outputs = static_cast<int32_t>(matrix->shape[0]);
  layer.inputs = static_cast<int32_t>(matrix->shape[1]);
  layer.after = after;
  FT_ASSIGN_OR_RETURN(const std::vector<float> rows, read_floats(*matrix));
  layer.matrix =
      transposed(rows, static_cast<size_t>(layer.outputs), static_cast<size_t>(layer.inputs));
  FT_RETURN_IF_ERROR(read_vector(files, name + ".bias", layer.outputs, &layer.bias));
  layers_.push_back(std::move(layer));
  return {};
}

Status RowLayers::add_norm(const Checkpoint& files, const std::string& name, float eps) {
  Layer& layer = layers_.back();
  FT_ASSIGN_OR_RETURN(const TensorView* weights, files.find(name + ".weight"));
  if (weights->num_elements() != layer.outputs) return misfit(*weights);
  FT_ASSIGN_OR_RETURN(layer.norm, read_floats(*weights));
  FT_RETURN_IF_ERROR(read_vector(files, name + ".bias", layer.outputs, &layer.norm_bias));
  layer.eps = eps;
  return {};
}

void RowLayers::end(const Layer& layer, std::span<double> y) {
  for (double& v : y) {
    if (layer.after == After::kTanh) v = std::tanh(v);
    if (layer.after == After::kRelu) v = std::max(v, 0.0);
    if (layer.after == After::kGelu) v = v / 2 * (1 + std::erf(v / std::sqrt(2.0)));
  }
  if (layer.norm.empty()) return;
  norm_row(y, double{layer.eps});
  for (size_t i = 0; i < y.size(); ++i) y[i] *= double{layer.norm[i]};
  for (size_t i = 0; i < layer.norm_bias.size(); ++i) y[i] += double{layer.norm_bias[i]};
}

std::vector<float> RowLayers::run(std::span<const float> row) const {
  std::vector<float> x(row.begin(), row.end());
  for (const Layer& layer : layers_) {
    std::vector<double> y(static_cast<size_t>(layer.outputs));
    std::copy(layer.bias.begin(), layer.bias.end(), y.begin());
    std::vector<float> part(y.size());
    for (size_t first = 0; first < x.size(); first += kInputsAtOnce) {
      std::fill(part.begin(), part.end(), 0.0F);
      for (size_t i = first; i < std::min(first + kInputsAtOnce, x.size()); ++i) {
        const float* weights = layer.matrix.data() + i * y.size();
        for (size_t j = 0; j < part.size(); ++j) part[j] += x[i] * weights[j];
      }
      for (size_t j = 0; j < y.size(); ++j) y[j] += double{part[j]};
    }
    end(layer, y);
    x.assign(y.size(), 0);
    for (size_t j = 0; j < y.size(); ++j) x[j] = static_cast<float>(y[j]);
  }
  return x;
}

}  // namespace foretoken
