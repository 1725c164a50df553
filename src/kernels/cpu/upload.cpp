#include "kernels/upload.h"

#include <cstring>
#include <stdexcept>
#include <string>

#include "kernels/cpu/op_table.h"
#include "kernels/cpu/token_page.h"
#include "kernels/plan_layout.h"

namespace foretoken::cpu {
namespace {

void check_header(const PlanHeader& header, const PlanLimits& limits, uint64_t step) {
  if (header.step != step) {
    throw std::runtime_error("plan of step " + std::to_string(header.step) +
                             " found in the ring entry of step " + std::to_string(step));
  }
  if (header.num_spans < 0 || header.num_spans > limits.max_spans || header.num_inits < 0 ||
      header.num_inits > limits.max_spans || header.num_block_updates < 0 ||
      header.num_block_updates > limits.max_block_updates || header.num_tokens < 0 ||
      header.num_tokens > limits.max_tokens) {
    throw std::runtime_error("plan of step " + std::to_string(step) + " exceeds its limits");
  }
}

void apply_init(const BatchState& batch, const SlotInit& init) {
  batch.params[init.slot] = init.params;
  SlotState& state = batch.slots[init.slot];
  state.len = init.len;
  state.computed = init.computed;
  state.finished = static_cast<int32_t>(DeviceFinish::kNone);
  state.num_drafts = 0;
}

void apply_block_update(const BatchState& batch, const BlockUpdate& update) {
  int32_t* table = batch.block_tables + int64_t{update.slot} * batch.max_blocks;
  table[update.index] = update.block;
  if (update.epoch == 0) return;
  const int32_t parent = update.index > 0 ? table[update.index - 1] : -1;
  const uint32_t parent_epoch = parent >= 0 ? batch.page_headers[parent].epoch : 0;
  batch.page_headers[update.block] = PageHeader{parent, parent_epoch, update.epoch, 0};
}

}  // namespace

void upload(const void* args, CpuPool&) {
  const auto& a = *static_cast<const UploadArgs*>(args);
  const uint64_t step = *a.step;
  const char* entry = a.ring + static_cast<int64_t>(step % kStepRingSize) * a.entry_bytes;
  const PlanView from = plan_view(const_cast<char*>(entry), a.limits);
  const PlanView to = plan_view(a.plan, a.limits);
  check_header(*from.header, a.limits, step);
  *to.header = *from.header;
  std::memcpy(to.spans, from.spans, sizeof(SpanPlan) * static_cast<size_t>(from.header->num_spans));
  for (int i = 0; i < from.header->num_inits; ++i) apply_init(a.batch, from.inits[i]);
  for (int i = 0; i < from.header->num_block_updates; ++i) {
    apply_block_update(a.batch, from.block_updates[i]);
  }
  for (int i = 0; i < from.header->num_spans; ++i) {
    const SpanPlan& span = from.spans[i];
    for (int t = 0; t < span.num_new_ids; ++t) {
      write_token(a.batch, span.slot, span.write_position + t, from.tokens[span.token_offset + t]);
    }
  }
}

}  // namespace foretoken::cpu
