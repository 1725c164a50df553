#include "kernels/step/verify_and_commit.h"

#include "kernels/cpu/op_table.h"
#include "kernels/cpu/token_page.h"
#include "kernels/plan_layout.h"
#include "kernels/step/commit_span.h"

namespace foretoken::cpu {

void verify_and_commit(const void* args, CpuPool&) {
  const auto& a = *static_cast<const VerifyAndCommitArgs*>(args);
  const PlanView plan = plan_view(const_cast<void*>(a.plan), a.limits);
  const ResultView out = result_view(a.result, a.result_limits);
  *out.header = ResultHeader{plan.header->step, plan.header->num_spans, a.tensors.counts->num_rows,
                             a.tensors.counts->num_logits_rows};
  for (int i = 0; i < plan.header->num_spans; ++i) {
    const SpanState& span = a.tensors.spans[i];
    SpanResult& result = out.spans[i];
    clear_counts(result);
    commit_span(a, span, result);
    const int begin = a.batch.slots[span.slot].len - result.num_committed;
    for (int k = 0; k < result.num_committed; ++k) {
      write_token(a.batch, span.slot, begin + k, result.ids[k]);
    }
  }
}

}  // namespace foretoken::cpu
