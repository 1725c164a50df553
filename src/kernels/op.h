#pragma once
#include <cstdint>

namespace foretoken {

// Numbers of the ops in a device's op table. An op's argument block names its number as `kOp`.
// Arguments are plain pointers to device memory and sizes; they are baked into graphs, so whatever
// changes from step to step is read from device memory.
enum class Op : uint16_t {
  kDelay,
  kMarkTime,
  kUpload,
  kPrepare,
  kEmbed,
  kRmsNorm,
  kGemm,
  kRopeKv,
  kAttention,
  kGatedAct,
  kSoftcap,
  kPool,
  kKeepRaw,
  kExportLogits,
  kImportLogits,
  kShapeLogits,
  kExportSpans,
  kAwaitMasks,
  kApplyMasks,
  kSample,
  kLogprobs,
  kCommit,
  kPublish,
  kNgram,
  kChooseLengths,
  kDraftRows,
  kDraftNext,
  kMoveRows,
  kPairRows,
  kHeadArgmax,
  kSpreadLogits,
  kFillRandom,
  kPackRows,
  kStamp,
  kAllReduce,
  kGatherColumns,
  kGatherArgmax,
  kShareMasks,
  kSendStep,
  kReceiveStep,
  kSendRows,
  kReceiveRows,
  kLayerTail,
  kCount,
};

}  // namespace foretoken
