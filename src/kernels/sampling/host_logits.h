#pragma once
#include "device/queue.h"
#include "kernels/op.h"
#include "kernels/step_types.h"

namespace foretoken {

// One logits row on its way through the host's logits processors.
struct HostRow {
  uint64_t processors;  // SlotParams::processors; 0: the row was not exported
  int32_t choice;
  int32_t prompt_len;
  int32_t num_tokens;  // length of the history, drafts before the row included
  int32_t reserved;
};

// Pinned memory between export_logits, a host call and import_logits.
struct HostLogits {
  HostRow* rows;     // [max_rows]
  float* logits;     // [max_rows, vocab]
  int32_t* history;  // [max_rows, max_len]
  int32_t max_len;   // ids of a history at most, those of the longest sequence and its drafts
};

// Copies the live logits rows that have processors, and their histories (known tokens, then
// drafts, up to the row's position), to pinned memory. Scored rows have none.
struct ExportLogitsArgs {
  static constexpr Op kOp = Op::kExportLogits;
  const float* logits;  // [max_rows, vocab]
  StepTensors tensors;
  BatchState batch;
  HostLogits host;
  int32_t row_offset;
  int32_t max_rows;
  int32_t vocab;
};

void export_logits(Queue& queue, const ExportLogitsArgs& args);

// Copies the exported rows back.
struct ImportLogitsArgs {
  static constexpr Op kOp = Op::kImportLogits;
  float* logits;  // [max_rows, vocab]
  const StepCounts* counts;
  HostLogits host;
  int32_t row_offset;
  int32_t max_rows;
  int32_t vocab;
};

void import_logits(Queue& queue, const ImportLogitsArgs& args);

}  // namespace foretoken
