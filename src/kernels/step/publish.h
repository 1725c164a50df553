#pragma once
#include "base/host_device.h"
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// Whether ResultView::pooled holds the state of this span: it ended with kStop and without an id.
FT_HD inline bool has_pooled(const SpanResult& span) {
  return span.finish == static_cast<int32_t>(DeviceFinish::kStop) && span.num_committed == 0;
}

// Step part 8: copies the live part of the result to ring entry (*step mod kStepRingSize), adds one
// to the step counter and stores its new value in `word` with release order (system scope). Live of
// rows are those of the live logits rows, of top their num_top entries, of pooled the spans that
// have one.
struct PublishArgs {
  static constexpr Op kOp = Op::kPublish;
  uint64_t* step;      // device step counter
  const void* result;  // device
  ResultLimits limits;
  int32_t with_logprobs;  // 1: the step filled rows and top
  int32_t with_pooled;    // 1: the step filled pooled
  char* ring;             // kStepRingSize entries in pinned memory
  int64_t entry_bytes;
  void* word;  // Event::word: the number of published steps
  // kStepRingSize entries in pinned memory: gets published_ns, also as the end until `stamp` says
  // otherwise; or null.
  StepStamps* stamps = nullptr;
  // Of any drafter: ids and drafts of a span behind its first max_draft_tokens + 1 and
  // max_draft_tokens stay behind.
  int32_t max_draft_tokens = kMaxDraftTokens;
};

void publish(Queue& queue, const PublishArgs& args);

}  // namespace foretoken
