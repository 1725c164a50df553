#include "kernels/sampling/host_logits.h"

#include <string>

#include "base/check.h"
#include "kernels/op_view.h"

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

template <>
struct Costs<ExportLogitsArgs> {
  static LiveRowsPlace place(const ExportLogitsArgs& a) { return {a.tensors.counts}; }
  static OpCost cost(const ExportLogitsArgs& a, const LiveRows& live) {
    return {.row_bytes = 2 * logits_bytes(a, live)};
  }
  static std::string shape(const ExportLogitsArgs& a) { return std::to_string(a.vocab); }
};

OpView export_logits_view() { return counted_view<ExportLogitsArgs>(); }

template <>
struct Costs<ImportLogitsArgs> {
  static LiveRowsPlace place(const ImportLogitsArgs& a) { return {a.counts}; }
  static OpCost cost(const ImportLogitsArgs& a, const LiveRows& live) {
    return {.row_bytes = 2 * logits_bytes(a, live)};
  }
  static std::string shape(const ImportLogitsArgs& a) { return std::to_string(a.vocab); }
};

OpView import_logits_view() { return counted_view<ImportLogitsArgs>(); }

}  // namespace foretoken
