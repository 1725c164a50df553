#include "convert/tensor_rows.h"

#include <algorithm>
#include <cmath>
#include <future>
#include <thread>

#include "model/files/forms/convert.h"

namespace foretoken {

TensorRows::TensorRows(const TensorView& view, int32_t turned_head_dim)
    : view_(view), head_dim_(turned_head_dim) {
  const bool one_element_rows = view.shape.size() == 1 && turned_head_dim > 0;
  cols_ = one_element_rows || view.shape.empty() ? 1 : view.shape.back();
  rows_ = cols_ > 0 ? view.num_elements() / cols_ : 0;
}

Status TensorRows::read(int64_t first, int64_t count, float most, float* out,
                        std::vector<std::byte>& scratch) const {
  if (head_dim_ == 0) {
    FT_RETURN_IF_ERROR(
        read_elements(view_, first * cols_, count * cols_, DType::kF32, out, scratch));
  }
  for (int64_t i = 0; head_dim_ > 0 && i < count; ++i) {
    const int64_t row = first + i, in_head = row % head_dim_;
    const int64_t from = row - in_head + in_head / 2 + in_head % 2 * (head_dim_ / 2);
    FT_RETURN_IF_ERROR(
        read_elements(view_, from * cols_, cols_, DType::kF32, out + i * cols_, scratch));
  }
  const auto fits = [most](float value) { return std::abs(value) <= most; };
  if (std::all_of(out, out + count * cols_, fits)) return {};
  return invalid_argument(view_.file + ": tensor '" + view_.name +
                          "' holds an element that is no number or beyond what the type can hold; "
                          "choose a type with a larger range, or fetch it again");
}

Status for_slices(int64_t count, const std::function<Status(int64_t first, int64_t count)>& work) {
  const int64_t cores = std::max<int64_t>(std::thread::hardware_concurrency(), 1);
  const int64_t most = (count + cores - 1) / cores;
  std::vector<std::future<Status>> slices;
  for (int64_t first = most; first < count; first += most) {
    slices.push_back(std::async(std::launch::async, work, first, std::min(most, count - first)));
  }
  Status status = work(0, std::min(most, count));
  for (std::future<Status>& slice : slices) {
    Status other = slice.get();
    if (status.ok()) status = std::move(other);
  }
  return status;
}

Status for_rows(const TensorRows& rows, float most,
                const std::function<void(int64_t row, const float* values)>& work) {
  return for_slices(rows.rows(), [&](int64_t first, int64_t count) -> Status {
    std::vector<float> values(static_cast<size_t>(rows.cols()));
    std::vector<std::byte> scratch;
    for (int64_t row = first; row < first + count; ++row) {
      FT_RETURN_IF_ERROR(rows.read(row, 1, most, values.data(), scratch));
      work(row, values.data());
    }
    return {};
  });
}

}  // namespace foretoken
