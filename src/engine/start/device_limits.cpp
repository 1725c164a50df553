#include "engine/start/device_limits.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "device/arena.h"
#include "kernels/gemm/gemm.h"
#include "kernels/step/mark_time.h"

namespace foretoken {
namespace {

constexpr size_t kCopyBytes = size_t{128} << 20;
constexpr int kProductSize = 1024;
constexpr int kNumTries = 5;

Result<double> best_seconds(Queue& queue, int64_t* marks, const std::function<void()>& enqueue) {
  double best = std::numeric_limits<double>::max();
  for (int i = 0; i < kNumTries; ++i) {
    mark_time(queue, {&marks[0]});
    enqueue();
    mark_time(queue, {&marks[1]});
    FT_RETURN_IF_ERROR(queue.drain());
    // The first one pays for what is done once.
    if (i > 0) best = std::min(best, static_cast<double>(marks[1] - marks[0]) * 1e-9);
  }
  return std::max(best, 1e-9);
}

// A copy reads and writes.
Result<double> measure_bytes(Device& device, Queue& queue, int64_t* marks) {
  Arena arena(device, MemoryKind::kDevice);
  FT_ASSIGN_OR_RETURN(void* from, arena.take(kCopyBytes, "a copy"));
  FT_ASSIGN_OR_RETURN(void* to, arena.take(kCopyBytes, "a copy"));
  FT_ASSIGN_OR_RETURN(const double seconds,
                      best_seconds(queue, marks, [&] { queue.copy(to, from, kCopyBytes); }));
  return 2.0 * kCopyBytes / seconds;
}

Result<double> measure_flops(Device& device, Queue& queue, int64_t* marks) {
  constexpr int64_t kSize = kProductSize;
  Arena arena(device, MemoryKind::kDevice);
  Arena pinned(device, MemoryKind::kPinned);
  FT_ASSIGN_OR_RETURN(void* x, arena.take(kSize * kSize * 2, "a product"));
  FT_ASSIGN_OR_RETURN(void* y, arena.take(kSize * kSize * sizeof(float), "a product"));
  FT_ASSIGN_OR_RETURN(StepCounts * counts, arena.take_array<StepCounts>(1, "a product"));
  FT_ASSIGN_OR_RETURN(StepCounts * host, pinned.take_array<StepCounts>(1, "a product"));
  *host = {kProductSize, kProductSize, 1, 0};
  queue.copy(counts, host, sizeof(StepCounts));
  const std::vector<uint16_t> rows(kSize * kSize);
  const WeightPart part{rows.data(), kSize};
  void* weight = device.pack_weight({&part, 1}, kSize, DType::kBF16);
  if (weight == nullptr) return resource_exhausted("no memory to measure matrix products with");
  const GemmArgs args{.counts = counts,
                      .x = x,
                      .weight = weight,
                      .y = y,
                      .bias = nullptr,
                      .row_kind = RowKind::kToken,
                      .row_offset = 0,
                      .max_rows = kProductSize,
                      .n = kProductSize,
                      .k = kProductSize,
                      .dtype = DType::kBF16,
                      .out_dtype = DType::kF32};
  const Result<double> seconds = best_seconds(queue, marks, [&] { gemm(queue, args); });
  device.free_weight(weight);
  FT_RETURN_IF_ERROR(seconds.status());
  return 2.0 * kSize * kSize * kSize / seconds.value();
}

}  // namespace

Result<DeviceLimits> find_device_limits(Device& device, Queue& queue) {
  if (const DeviceLimits known = known_limits(device.name()); known.are_known()) return known;
  Arena pinned(device, MemoryKind::kPinned);
  FT_ASSIGN_OR_RETURN(int64_t* marks, pinned.take_array<int64_t>(2, "time marks"));
  DeviceLimits limits;
  FT_ASSIGN_OR_RETURN(limits.bytes_per_second, measure_bytes(device, queue, marks));
  FT_ASSIGN_OR_RETURN(limits.flops_per_second, measure_flops(device, queue, marks));
  return limits;
}

}  // namespace foretoken
