// What the readers need of the engine's library, for fuzzers that are built without it.
#include <foretoken/request.h>

namespace foretoken {

const char* finish_reason_name(FinishReason reason) {
  return reason == FinishReason::kStop ? "stop" : "length";
}

}  // namespace foretoken
