#include "engine/request/output_processor.h"

#include <algorithm>
#include <atomic>
#include <fstream>
#include <numeric>
#include <thread>

#include "base/result.h"
#include "engine/dialled_engine.h"

namespace foretoken {
namespace {

// Events from a fake engine thread: what is counted, what is dropped, what is destroyed.
class OutputEvents : public testing::Test {
 protected:
  OutputEvents() : outputs_(ring_, intake_, hooks()) { outputs_.start(); }

  OutputProcessor::Hooks hooks() {
    return {.forget = [this](const RequestGroup&) { ++num_forgotten_; },
            .device_error = [this] { return device_error_; }};
  }

  RequestState* new_request() {
    auto* request = new RequestState();  // destroyed by the processor with its last event
    request->group->callback = [this](const RequestOutput& output) { seen_.push_back(output); };
    request->stats.num_prompt_tokens = 4;
    request->sequence.max_draft_tokens = 4;
    request->sequence.drafter = 1;
    return request;
  }

  static OutputEvent event_of(RequestState* request, std::vector<int32_t> ids) {
    OutputEvent event;
    event.request = request;
    event.drafter = request->sequence.drafter;
    event.num_ids = static_cast<int32_t>(ids.size());
    std::copy(ids.begin(), ids.end(), event.ids);
    return event;
  }

  void end() {
    ring_.close();
    outputs_.join();
  }

  OutputRing ring_{16};
  Intake intake_;
  int num_forgotten_ = 0;
  Status device_error_;
  std::vector<RequestOutput> seen_;
  OutputProcessor outputs_;
};

TEST_F(OutputEvents, AreCountedByRequestAndInAll) {
  RequestState* request = new_request();
  OutputEvent first = event_of(request, {5});
  first.num_cached_tokens = 3;
  ring_.push(first);
  OutputEvent resumed = event_of(request, {6, 7, 8});
  resumed.num_drafted = 4;
  resumed.num_accepted = 2;
  resumed.num_cached_tokens = 1;
  resumed.num_preemptions = 1;
  ring_.push(resumed);
  OutputEvent last = event_of(request, {9});
  last.finish = FinishReason::kLength;
  last.released = true;
  ring_.push(last);
  end();
  ASSERT_EQ(seen_.size(), 3u);
  EXPECT_EQ(seen_[1].token_ids, (std::vector<int32_t>{6, 7, 8}));
  EXPECT_TRUE(seen_[2].finished);
  const RequestStats& stats = seen_[2].stats;
  EXPECT_EQ(stats.num_prompt_tokens, 4);
  EXPECT_EQ(stats.num_cached_tokens, 3);
  EXPECT_EQ(stats.num_output_tokens, 5);
  EXPECT_EQ(stats.num_steps, 3);
  EXPECT_EQ(stats.num_drafts, 1);
  EXPECT_EQ(stats.num_draft_tokens, 4);
  EXPECT_EQ(stats.num_accepted_tokens, 2);
  EXPECT_EQ(stats.num_preemptions, 1);
  for (int i = 0; i < kMaxSpeculativeTokens; ++i) {
    EXPECT_EQ(stats.num_draft_tokens_per_pos[i], i < 4 ? 1 : 0);
    EXPECT_EQ(stats.num_accepted_tokens_per_pos[i], i < 2 ? 1 : 0);
  }
  EXPECT_EQ(outputs_.totals_of(0).num_output_tokens, 0);
  EXPECT_EQ(outputs_.totals_of(1).num_output_tokens, 5);
  EXPECT_EQ(outputs_.totals_of(1).num_prompt_tokens, 4);
  EXPECT_EQ(outputs_.totals_of(1).num_accepted_tokens_per_pos[1], 1);
  EXPECT_EQ(outputs_.totals().num_output_tokens, 5);
  EXPECT_EQ(outputs_.totals().num_prompt_tokens, 4);
  EXPECT_EQ(outputs_.num_finished(), 1);
  EXPECT_EQ(num_forgotten_, 1);
}

TEST_F(OutputEvents, APromptCountsWithItsFirstToken) {
  RequestState* request = new_request();
  std::vector<int64_t> counted;
  request->group->callback = [&](const RequestOutput&) {
    counted.push_back(outputs_.totals().num_prompt_tokens);
  };
  ring_.push(event_of(request, {5}));
  OutputEvent last = event_of(request, {6});
  last.finish = FinishReason::kLength;
  last.released = true;
  ring_.push(last);
  end();
  EXPECT_EQ(counted, (std::vector<int64_t>{4, 4}));
  EXPECT_EQ(outputs_.totals().num_prompt_tokens, 4);
}

TEST_F(OutputEvents, AfterTheEndNothingMoreIsShown) {
  RequestState* request = new_request();
  OutputEvent aborted = event_of(request, {});
  aborted.finish = FinishReason::kAbort;
  ring_.push(aborted);
  OutputEvent late = event_of(request, {1, 2});
  ring_.push(late);
  late.released = true;
  ring_.push(late);
  end();
  ASSERT_EQ(seen_.size(), 1u);
  EXPECT_EQ(seen_[0].finish_reason, FinishReason::kAbort);
  EXPECT_EQ(outputs_.totals().num_output_tokens, 0);
  EXPECT_EQ(outputs_.num_finished(), 1);
}

TEST_F(OutputEvents, ARequestsOwnErrorSaysWhatHappened) {
  OutputEvent failed = event_of(new_request(), {});
  failed.finish = FinishReason::kError;
  failed.released = true;
  ring_.push(failed);
  end();
  ASSERT_EQ(seen_.size(), 1u);
  EXPECT_NE(seen_[0].status.message().find("no valid probability"), std::string::npos);
}

// What a request brought about is not a defect.
TEST_F(OutputEvents, ARequestThatAllowsNoTokenIsAtFault) {
  RequestState* request = new_request();
  request->group->request.sampling.allowed_token_ids = std::vector<int32_t>{0};
  request->group->request.sampling.min_tokens = 1;
  OutputEvent failed = event_of(request, {});
  failed.finish = FinishReason::kError;
  failed.released = true;
  ring_.push(failed);
  end();
  ASSERT_EQ(seen_.size(), 1u);
  EXPECT_EQ(seen_[0].status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(seen_[0].status.message().find("allowed_token_ids"), std::string::npos);
}

TEST_F(OutputEvents, ADeviceErrorIsPassedOn) {
  device_error_ = internal_error("device queue: broken");
  OutputEvent failed = event_of(new_request(), {});
  failed.finish = FinishReason::kError;
  failed.released = true;
  ring_.push(failed);
  end();
  ASSERT_EQ(seen_.size(), 1u);
  EXPECT_EQ(seen_[0].status.message(), "device queue: broken");
}

class OutputText : public DialledEngine {
 protected:
  static RequestOutput run(const Request& one, int num_draft_tokens = 0) {
    const auto engine = make(config(num_draft_tokens));
    return engine->generate({one})[0];
  }
};

// The stop string begins in one token and ends in the next, at every place and for every number of
// tokens a step.
TEST_F(OutputText, StopStringsAcrossTokens) {
  const std::string whole = run(request(0, 40, 20)).text;
  for (const int num_draft_tokens : {0, 4}) {
    const auto engine = make(config(num_draft_tokens));
    for (size_t at = 3; at + 6 < whole.size(); at += 5) {
      Request one = request(0, 40, 20);
      one.sampling.stop = {"never", whole.substr(at, 6)};
      const RequestOutput cut = engine->generate({one})[0];
      const size_t found = whole.find(one.sampling.stop[1]);
      EXPECT_EQ(cut.text, whole.substr(0, found));
      EXPECT_EQ(cut.finish_reason, FinishReason::kStop);
      EXPECT_EQ(cut.stop_reason, one.sampling.stop[1]);
      EXPECT_EQ(cut.stats.num_output_tokens, static_cast<int64_t>(cut.token_ids.size()));
      one.sampling.include_stop_str_in_output = true;
      EXPECT_EQ(engine->generate({one})[0].text, whole.substr(0, found + 6));
    }
  }
}

TEST_F(OutputText, MinTokensPutsOffStopStringsAndStopIds) {
  const std::vector<int32_t> ids = expected(0, 40, 20);
  Request by_text = request(0, 40, 20);
  by_text.sampling.stop = {dialled_text({ids[4]})};
  EXPECT_EQ(run(by_text).token_ids.size(), 5u);
  by_text.sampling.min_tokens = 5;
  EXPECT_EQ(run(by_text).finish_reason, FinishReason::kLength);
  by_text.sampling.min_tokens = 4;
  EXPECT_EQ(run(by_text).token_ids.size(), 5u);

  Request by_id = request(0, 40, 20);
  by_id.sampling.stop_token_ids = {ids[4]};
  by_id.sampling.min_tokens = 4;
  EXPECT_EQ(run(by_id).token_ids.size(), 5u);
  by_id.sampling.min_tokens = 5;
  const RequestOutput masked = run(by_id, 4);
  ASSERT_GE(masked.token_ids.size(), 5u);
  EXPECT_NE(masked.token_ids[4], ids[4]);
}

TEST_F(OutputText, AStopIdEndsWithoutText) {
  const std::vector<int32_t> ids = expected(0, 40, 20);
  for (const int num_draft_tokens : {0, 4}) {
    Request one = request(0, 40, 20);
    one.sampling.stop_token_ids = {ids[7], ids[9]};
    const RequestOutput output = run(one, num_draft_tokens);
    EXPECT_EQ(output.finish_reason, FinishReason::kStop);
    EXPECT_EQ(output.stop_reason, std::to_string(ids[7]));
    EXPECT_EQ(output.token_ids, std::vector<int32_t>(ids.begin(), ids.begin() + 8));
    EXPECT_EQ(output.text.find("t" + std::to_string(ids[7])), std::string::npos);
  }
}

TEST_F(OutputText, EosEndsUnlessIgnored) {
  const std::vector<int32_t> ids = expected(0, 40, 20);
  const std::string path = folder() + "/generation_config.json";
  std::ifstream before_file(path);
  const std::string before{std::istreambuf_iterator<char>(before_file), {}};
  std::ofstream(path) << "{\"eos_token_id\": [1, " << ids[6] << "]}";
  Request one = request(0, 40, 20);
  const RequestOutput ended = run(one);
  EXPECT_EQ(ended.finish_reason, FinishReason::kStop);
  EXPECT_EQ(ended.token_ids.size(), 7u);
  one.sampling.ignore_eos = true;
  const RequestOutput ignored = run(one);
  EXPECT_EQ(ignored.finish_reason, FinishReason::kLength);
  EXPECT_EQ(ignored.token_ids, ids);
  std::ofstream(path) << before;
}

// Of a tuned model whose end of a turn stands in tokenizer_config.json alone.
TEST_F(OutputText, TheTokenizersOwnEndEndsToo) {
  const std::vector<int32_t> ids = expected(0, 40, 20);
  const std::string path = folder() + "/tokenizer_config.json";
  std::ifstream before_file(path);
  const std::string before{std::istreambuf_iterator<char>(before_file), {}};
  std::string changed = before;
  changed.replace(changed.find("</s>"), 4, "\u0120t" + std::to_string(ids[6]));
  std::ofstream(path) << changed;
  for (const int num_draft_tokens : {0, 4}) {
    const RequestOutput ended = run(request(0, 40, 20), num_draft_tokens);
    EXPECT_EQ(ended.finish_reason, FinishReason::kStop);
    EXPECT_EQ(ended.token_ids.size(), 7u);
  }
  std::ofstream(path) << before;
}

TEST_F(OutputText, PiecesAddUpToTheWhole) {
  const auto engine = make(config(4));
  Request one = request(0, 40, 30);
  one.sampling.stop = {"t1 t1 t1 t1"};
  const RequestOutput whole = engine->generate({one})[0];
  std::string text;
  std::vector<int32_t> ids;
  std::atomic<int> num_finished{0};
  ASSERT_TRUE(engine
                  ->submit(one,
                           [&](const RequestOutput& piece) {
                             text += piece.text;
                             ids.insert(ids.end(), piece.token_ids.begin(), piece.token_ids.end());
                             if (piece.finished) num_finished.fetch_add(1);
                           })
                  .ok());
  while (num_finished.load() == 0) std::this_thread::yield();
  EXPECT_EQ(text, whole.text);
  EXPECT_EQ(ids, expected(0, 40, 30));
  EXPECT_EQ(whole.finish_reason, FinishReason::kLength);
}

// A prompt that has shown everything that follows: whole drafts are accepted.
class OutputOfDrafts : public OutputText {
 protected:
  static Request request_seen_before() {
    Request one = request(0, 60, 40);
    for (int i = 0; i < 8; ++i) one.prompt_token_ids.push_back(cycle().at(i));
    return one;
  }
  static std::vector<RequestOutput> stream(Engine& engine, const Request& request) {
    std::vector<RequestOutput> pieces;
    std::atomic<bool> done{false};
    const Status status = engine.submit(request, [&](const RequestOutput& output) {
      pieces.push_back(output);
      if (output.finished) done.store(true);
    });
    EXPECT_TRUE(status.ok()) << status.message();
    while (status.ok() && !done.load()) std::this_thread::yield();
    return pieces;
  }
};

// A stop string may end the text inside a step: drafts behind it count for nothing.
TEST_F(OutputOfDrafts, CountsBehindAStopStringAreDropped) {
  const auto engine = make(config(4));
  const RequestOutput whole = engine->generate({request_seen_before()})[0];
  int num_cut_short = 0;
  for (size_t at = 0; at < 20; ++at) {
    Request cut = request_seen_before();
    cut.sampling.stop = {dialled_text({whole.token_ids[at]})};
    int64_t num_accepted = 0;
    size_t num_ids = 0;
    const auto pieces = stream(*engine, cut);
    for (const RequestOutput& piece : pieces) {
      EXPECT_LE(static_cast<size_t>(piece.num_accepted_tokens), piece.token_ids.size());
      EXPECT_LE(piece.accepted_text_bytes, piece.text.size());
      num_accepted += piece.num_accepted_tokens;
      num_ids += piece.token_ids.size();
    }
    const RequestStats& stats = pieces.back().stats;
    EXPECT_EQ(num_ids, at + 1);
    EXPECT_EQ(stats.num_output_tokens, static_cast<int64_t>(at) + 1);
    EXPECT_EQ(stats.num_accepted_tokens, num_accepted);
    const auto& by_position = stats.num_accepted_tokens_per_pos;
    EXPECT_EQ(std::accumulate(by_position.begin(), by_position.end(), int64_t{0}), num_accepted);
    // Every step gives one token that is no draft, unless the text ended among its drafts.
    const int64_t at_least = stats.num_output_tokens - stats.num_steps;
    EXPECT_GE(num_accepted, at_least);
    EXPECT_LE(num_accepted, at_least + 1);
    if (num_accepted > at_least) ++num_cut_short;
  }
  EXPECT_GT(num_cut_short, 5);
  const RequestStats totals = engine->stats().requests;
  EXPECT_EQ(totals.num_output_tokens, 40 + 20 * 21 / 2);
  EXPECT_LT(totals.num_accepted_tokens, totals.num_output_tokens);
}

// The text of the accepted tokens stands at the beginning of a piece.
TEST_F(OutputOfDrafts, AcceptedTextIsThatOfTheAcceptedTokens) {
  const auto engine = make(config(4));
  int num_with_drafts = 0;
  for (const RequestOutput& piece : stream(*engine, request_seen_before())) {
    const std::vector<int32_t> accepted(piece.token_ids.begin(),
                                        piece.token_ids.begin() + piece.num_accepted_tokens);
    EXPECT_EQ(piece.text.substr(0, piece.accepted_text_bytes), dialled_text(accepted));
    if (!accepted.empty()) ++num_with_drafts;
  }
  EXPECT_GT(num_with_drafts, 3);
}

// The rows of tokens behind a stop string go with them.
TEST_F(OutputOfDrafts, LogprobsEndWithTheTokens) {
  const auto engine = make(config(4));
  Request one = request_seen_before();
  one.sampling.logprobs = 1;
  const RequestOutput whole = engine->generate({one})[0];
  ASSERT_EQ(whole.logprobs.size(), 40u);
  for (size_t at = 0; at < 12; ++at) {
    Request cut = one;
    cut.sampling.stop = {dialled_text({whole.token_ids[at]})};
    const RequestOutput output = engine->generate({cut})[0];
    ASSERT_EQ(output.logprobs.size(), at + 1);
    for (size_t i = 0; i <= at; ++i) {
      EXPECT_EQ(output.logprobs[i].token.token_id, output.token_ids[i]);
      EXPECT_EQ(output.logprobs[i].token.logprob, whole.logprobs[i].token.logprob);
    }
  }
}

TEST_F(OutputText, WithoutDetokenizingThereIsNone) {
  Request one = request(0, 40, 8);
  one.sampling.detokenize = false;
  one.sampling.logprobs = 2;
  const RequestOutput output = run(one);
  EXPECT_TRUE(output.text.empty());
  EXPECT_EQ(output.token_ids, expected(0, 40, 8));
  ASSERT_EQ(output.logprobs.size(), 8u);
  EXPECT_TRUE(output.logprobs[0].token.decoded_token.empty());
  EXPECT_EQ(output.logprobs[0].top.size(), 2u);
}

TEST(FinishReasonName, FollowsTheOpenAiNames) {
  EXPECT_STREQ(finish_reason_name(FinishReason::kNone), "");
  EXPECT_STREQ(finish_reason_name(FinishReason::kStop), "stop");
  EXPECT_STREQ(finish_reason_name(FinishReason::kLength), "length");
  EXPECT_STREQ(finish_reason_name(FinishReason::kAbort), "abort");
  EXPECT_STREQ(finish_reason_name(FinishReason::kError), "error");
}

}  // namespace
}  // namespace foretoken
