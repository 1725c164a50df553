#pragma once
#include <foretoken/request.h>

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "kernels/sampling/host_logits.h"

namespace foretoken {

// The logits processors of one sequence. SlotParams::processors points to one, which must outlive
// every step that holds the sequence.
class ProcessorChain {
 public:
  explicit ProcessorChain(std::vector<std::shared_ptr<const LogitsProcessor>> processors)
      : processors_(std::move(processors)) {}

  // Applies the processors in order. An exception, a NaN or a +inf turns the row into NaN, which
  // ends the sequence with an error if the row decides a token of it. Thread of the queue.
  void apply(const LogitsContext& context, std::span<float> logits);

  // The first fault of `apply`, or empty. Any thread.
  std::string fault() const;

 private:
  void note(std::string fault);

  const std::vector<std::shared_ptr<const LogitsProcessor>> processors_;
  mutable std::mutex mutex_;
  std::string fault_;
};

// What the queue hands to run_processors.
struct ProcessorCall {
  HostLogits host{};
  int32_t max_rows = 0;  // rows of `host` that export_logits wrote
  int32_t vocab = 0;
};

// Runs the chains of the exported rows of `call`, a ProcessorCall; for Queue::call_host.
void run_processors(void* call);

}  // namespace foretoken
