#include "engine/request/host_processors.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>

namespace foretoken {
namespace {

bool is_usable(float logit) {
  return !std::isnan(logit) && logit != std::numeric_limits<float>::infinity();
}

}  // namespace

void ProcessorChain::apply(const LogitsContext& context, std::span<float> logits) {
  try {
    for (const auto& processor : processors_) processor->apply(context, logits);
    if (std::all_of(logits.begin(), logits.end(), is_usable)) return;
    note("a logits processor wrote NaN or +inf; use finite logits, and -inf to forbid a token");
  } catch (const std::exception& error) {
    note(std::string("a logits processor threw: ") + error.what());
  } catch (...) {
    note("a logits processor threw something that is no std::exception");
  }
  std::fill(logits.begin(), logits.end(), std::numeric_limits<float>::quiet_NaN());
}

std::string ProcessorChain::fault() const {
  std::lock_guard lock(mutex_);
  return fault_;
}

void ProcessorChain::note(std::string fault) {
  std::lock_guard lock(mutex_);
  if (fault_.empty()) fault_ = std::move(fault);
}

void run_processors(void* call) {
  const auto& c = *static_cast<const ProcessorCall*>(call);
  for (int64_t i = 0; i < c.max_rows; ++i) {
    const HostRow& row = c.host.rows[i];
    if (row.processors == 0) continue;
    const std::span<const int32_t> history(c.host.history + i * c.host.max_len,
                                           static_cast<size_t>(row.num_tokens));
    const auto prompt_len = static_cast<size_t>(std::min(row.prompt_len, row.num_tokens));
    const LogitsContext context{.prompt_ids = history.first(prompt_len),
                                .output_ids = history.subspan(prompt_len),
                                .choice = row.choice};
    reinterpret_cast<ProcessorChain*>(row.processors)
        ->apply(context, {c.host.logits + i * c.vocab, static_cast<size_t>(c.vocab)});
  }
}

}  // namespace foretoken
