#include "device/cpu/cpu_graph.h"

#include <cstring>

#include "base/check.h"

namespace foretoken::cpu {

void CpuGraph::add(TaskName name, const void* args, size_t args_bytes) {
  constexpr size_t kAlignment = alignof(std::max_align_t);
  FT_CHECK(args_bytes <= kMaxOpArgs && args_.size() <= UINT32_MAX - kMaxOpArgs);
  const size_t at = args_.size();
  args_.resize(at + (args_bytes + kAlignment - 1) / kAlignment * kAlignment);
  if (args_bytes > 0) std::memcpy(args_.data() + at, args, args_bytes);
  nodes_.push_back({name, static_cast<uint32_t>(at)});
}

void CpuGraph::clear() {
  nodes_.clear();
  args_.clear();
}

}  // namespace foretoken::cpu
