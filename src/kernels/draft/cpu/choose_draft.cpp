#include "kernels/draft/choose_draft.h"

#include "kernels/cpu/op_table.h"
#include "kernels/draft/draft_turn.h"
#include "kernels/plan_layout.h"

namespace foretoken::cpu {

void choose_draft(const void* args, CpuPool&) {
  const auto& a = *static_cast<const ChooseDraftArgs*>(args);
  const PlanView plan = plan_view(const_cast<void*>(a.plan), a.limits);
  for (int i = 0; i < plan.header->num_spans; ++i) choose_draft_of(a, plan.spans[i]);
}

}  // namespace foretoken::cpu
