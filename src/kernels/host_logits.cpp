#include "kernels/host_logits.h"

#include "base/check.h"

namespace foretoken {
namespace {

void check_host(const HostLogits& host) {
  FT_CHECK(host.rows != nullptr && host.logits != nullptr && host.history != nullptr);
  FT_CHECK(host.max_len > 0);
}

}  // namespace

void export_logits(Queue& queue, const ExportLogitsArgs& args) {
  const StepTensors& t = args.tensors;
  check_host(args.host);
  FT_CHECK(args.logits != nullptr && t.counts != nullptr && t.logits_rows != nullptr);
  FT_CHECK(t.row_slot != nullptr && t.positions != nullptr && args.batch.params != nullptr);
  FT_CHECK(args.batch.slots != nullptr && args.batch.block_tables != nullptr);
  FT_CHECK(args.batch.token_pages != nullptr && args.batch.block_size > 0);
  FT_CHECK(args.row_offset >= 0 && args.max_rows > 0 && args.vocab > 0);
  queue.launch(args);
}

void import_logits(Queue& queue, const ImportLogitsArgs& args) {
  check_host(args.host);
  FT_CHECK(args.logits != nullptr && args.counts != nullptr);
  FT_CHECK(args.row_offset >= 0 && args.max_rows > 0 && args.vocab > 0);
  queue.launch(args);
}

}  // namespace foretoken
