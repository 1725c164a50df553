#include "engine/request/output_collector.h"

#include <algorithm>
#include <iterator>

#include "config/sampling_field.h"

namespace foretoken {
namespace {

template <class T>
void append(const std::vector<T>& part, std::vector<T>& sum) {
  sum.insert(sum.end(), part.begin(), part.end());
}

}  // namespace

OutputCollector::OutputCollector(const Request& request)
    : sums_(static_cast<size_t>(std::clamp(request.sampling.n, 1, kMaxChoices))) {
  for (size_t i = 0; i < sums_.size(); ++i) {
    sums_[i].request_id = request.request_id;
    sums_[i].index = static_cast<int>(i);
  }
}

void OutputCollector::add(const RequestOutput& output) {
  RequestOutput& sum = sums_[static_cast<size_t>(output.index)];
  sum.request_id = output.request_id;
  sum.text += output.text;
  append(output.token_ids, sum.token_ids);
  append(output.logprobs, sum.logprobs);
  append(output.prompt_logprobs, sum.prompt_logprobs);
  append(output.embedding, sum.embedding);
  if (!output.finished) return;
  sum.finished = true;
  sum.request_finished = output.request_finished;
  sum.finish_reason = output.finish_reason;
  sum.stop_reason = output.stop_reason;
  sum.status = output.status;
  sum.stats = output.stats;
}

void OutputCollector::fail(const Status& status) {
  for (RequestOutput& sum : sums_) {
    sum.finished = true;
    sum.request_finished = &sum == &sums_.back();
    sum.finish_reason = FinishReason::kError;
    sum.status = status;
  }
}

}  // namespace foretoken
