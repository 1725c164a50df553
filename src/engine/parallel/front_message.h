#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "group/rank_link.h"

namespace foretoken {

// What a front end and an engine of another process tell each other over the links of FrontLane.
enum class FrontKind : uint64_t {
  // To the engine. A reply has the number of what it answers.
  kSubmit = 1,     // Request; its outputs have its number; the reply: Status, id
  kGenerate,       // requests; the reply: outputs
  kAbort,          // id; no reply
  kStats,          // the reply: EngineStats
  kLoadAdapter,    // LoraModule, whether it may replace one; the reply: Status
  kUnloadAdapter,  // name; the reply: Status
  kSleep,          // level, whether requests end; the reply: Status, bytes that were given back
  kRecallSleep,    // of the kSleep with its number, which came before; no reply
  kWakeUp,         // tags; the reply: Status
  kEnd,            // nothing follows; the engine ends
  // From the engine.
  kInfo,  // EngineInfo and adapters: it is ready
  kReply,
  kOutput,  // RequestOutput
  kEnded,   // nothing follows
};

struct FrontMessage {
  FrontKind kind = FrontKind::kEnd;
  uint64_t number = 0;
  uint64_t step = 0;  // of the engine, about; for errors
  std::string body = {};
};

// The other side of a link of two.
inline int other_side(const group::RankLink& link) { return 1 - link.rank(); }

Status send_message(group::RankLink& link, const FrontMessage& message, std::string_view what);
Result<FrontMessage> receive_message(group::RankLink& link, std::string_view what);

}  // namespace foretoken
