#include "kernels/publish.h"

#include <atomic>
#include <cstring>

#include "kernels/cpu/op_table.h"
#include "kernels/plan_layout.h"

namespace foretoken::cpu {

void publish(const void* args, CpuPool&) {
  const auto& a = *static_cast<const PublishArgs*>(args);
  const uint64_t step = *a.step;
  const ResultView from = result_view(const_cast<void*>(a.result), a.limits);
  const ResultView to =
      result_view(a.ring + static_cast<int64_t>(step % kStepRingSize) * a.entry_bytes, a.limits);
  *to.header = *from.header;
  std::memcpy(to.spans, from.spans,
              sizeof(SpanResult) * static_cast<size_t>(from.header->num_spans));
  *a.step = step + 1;
  static_cast<std::atomic<uint64_t>*>(a.word)->store(step + 1, std::memory_order_seq_cst);
}

}  // namespace foretoken::cpu
