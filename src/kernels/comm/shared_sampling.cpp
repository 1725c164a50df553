#include "kernels/comm/shared_sampling.h"

#include "base/check.h"

namespace foretoken {
namespace {

void check(const SharedLogits& a) {
  FT_CHECK(a.comm != nullptr && a.part != nullptr && a.dealt != nullptr && a.keys != nullptr);
  FT_CHECK(a.tensors.counts != nullptr && a.tensors.logits_rows != nullptr);
  FT_CHECK(a.tensors.row_slot != nullptr && a.tensors.positions != nullptr);
  FT_CHECK(a.tensors.sampled != nullptr && a.batch.params != nullptr && a.batch.slots != nullptr);
  FT_CHECK(a.row_offset >= 0 && a.max_rows > 0);
  FT_CHECK(a.rank >= 0 && a.rank < a.size && cuts_columns(a.vocab, a.size));
}

}  // namespace

void deal_logits(Queue& queue, const DealLogitsArgs& args) {
  check(args.of);
  queue.launch(args);
}

void sample_parts(Queue& queue, const SamplePartsArgs& args) {
  check(args.of);
  queue.launch(args);
}

void gather_samples(Queue& queue, const GatherSamplesArgs& args) {
  check(args.of);
  queue.launch(args);
}

}  // namespace foretoken
