#pragma once
#include <foretoken/engine.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace foretoken {

// The likeliest continuations of one prompt, as vLLM's `use_beam_search` looks for them: `n` of the
// request is the width; of each beam the 2 * n likeliest next tokens by the model's own
// log-probabilities are candidates, and the best n that do not end go on. Each step of a beam is a
// request of one token, whose prefix the cache has; drafts are of no use to it. Nothing of the
// sampling parameters but n, max_tokens, logprobs, ignore_eos, include_stop_str_in_output,
// detokenize and skip_special_tokens has an effect. Make it shared; the engine outlives it.
class BeamSearch : public std::enable_shared_from_this<BeamSearch> {
 public:
  // `length_penalty`: the sum of log-probabilities is divided by the number of tokens, the prompt's
  // included and an end token left out, to this power.
  BeamSearch(Engine& engine, float length_penalty)
      : engine_(engine), length_penalty_(length_penalty) {}

  // Once. Outputs of the n best, the best first, come to `callback` when all are known, from the
  // engine's output threads. InvalidArgument for a form of the output, or more candidates than
  // max_logprobs allows, and what the engine refuses.
  Status start(Request request, OutputCallback callback);
  // Ends it within a step with reason "abort" and the best so far. Any thread.
  void abort();

 private:
  struct Beam {
    std::vector<int32_t> ids;  // of the output, with the end token
    std::vector<TokenLogprobs> logprobs;
    double sum = 0;
    bool ended = false;
  };

  Status begin();
  Status check() const;
  Status read_prompt();
  Result<double> seconds_left() const;
  Status too_late() const;
  Request step_of(size_t beam, double seconds) const;
  Status step();
  void receive(size_t beam, const RequestOutput& output);
  void answered(const Status& status, bool is_aborted);
  void advance();
  Beam extended(const Beam& beam, const TokenLogprobs& row, const Logprob& token) const;
  void keep_best(std::vector<Beam>* beams) const;
  double score(double sum, size_t num_tokens) const;
  std::string text_of(const std::vector<int32_t>& ids) const;
  void finish(const Status& status);
  RequestOutput output_of(const Beam& beam, int index) const;

  Engine& engine_;
  const float length_penalty_;
  Request request_;  // with ids for a prompt
  OutputCallback callback_;
  std::optional<int32_t> eos_;
  int max_tokens_ = 0;
  std::chrono::steady_clock::time_point begun_;
  std::atomic<bool> aborted_{false};

  std::mutex mutex_;
  std::vector<Beam> beams_;
  std::vector<Beam> completed_;
  std::vector<std::string> step_ids_;  // of the engine's requests for each beam
  std::vector<TokenLogprobs> rows_;    // what the model said behind each beam
  size_t num_waiting_ = 0;
  Status error_;  // the first one
  RequestStats stats_;
};

}  // namespace foretoken
