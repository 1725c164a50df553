#include "kernels/sampling/token_masks.h"

#include "base/check.h"

namespace foretoken {
namespace {

void check_exchange(const MaskExchange& exchange) {
  FT_CHECK(exchange.posted != nullptr && exchange.passed != nullptr);
  FT_CHECK(exchange.taken != nullptr && exchange.answered != nullptr);
  FT_CHECK(exchange.num_spans != nullptr && exchange.spans != nullptr);
  FT_CHECK(exchange.answers != nullptr && exchange.masks != nullptr);
  FT_CHECK(exchange.repairs != nullptr && exchange.resting != nullptr);
  FT_CHECK(exchange.max_spans > 0 && exchange.rows_each > 0 && exchange.mask_words > 0);
}

}  // namespace

void export_spans(Queue& queue, const ExportSpansArgs& args) {
  check_exchange(args.exchange);
  FT_CHECK(args.counts != nullptr && args.spans != nullptr && args.ticket != nullptr);
  FT_CHECK(args.batch.params != nullptr && args.batch.slots != nullptr);
  FT_CHECK(args.num_repaired >= 0 && args.num_repaired < args.exchange.rows_each);
  FT_CHECK(args.num_repaired == 0 || args.drafter != kVerifying);
  queue.launch(args);
}

void await_masks(Queue& queue, const AwaitMasksArgs& args) {
  check_exchange(args.exchange);
  FT_CHECK(args.counts != nullptr && args.spans != nullptr && args.ticket != nullptr);
  FT_CHECK(args.params != nullptr && args.slots != nullptr && args.budget_ns >= 0);
  queue.launch(args);
}

void apply_masks(Queue& queue, const ApplyMasksArgs& args) {
  FT_CHECK(args.logits != nullptr && args.masks != nullptr && args.tensors.counts != nullptr);
  FT_CHECK(args.params != nullptr && args.slots != nullptr);
  FT_CHECK(args.max_rows > 0 && args.vocab > 0 && args.mask_words >= (args.vocab + 31) / 32);
  queue.launch(args);
}

}  // namespace foretoken
