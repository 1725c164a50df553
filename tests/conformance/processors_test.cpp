#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <thread>

#include "conformance/layouts.h"
#include "support/gate.h"

// Logits processors: what they see, what they decide, and what becomes of those that misbehave.

namespace foretoken {
namespace {

using Apply = std::function<void(const LogitsContext&, std::span<float>)>;

class Processor final : public LogitsProcessor {
 public:
  explicit Processor(Apply apply) : apply_(std::move(apply)) {}
  void apply(const LogitsContext& context, std::span<float> logits) const override {
    apply_(context, logits);
  }

 private:
  const Apply apply_;
};

Request request_with(Apply apply, int max_tokens = 24) {
  Request request;
  request.prompt_token_ids = {40, 41, 42, 40, 41, 42, 40};
  request.sampling.max_tokens = max_tokens;
  request.sampling.temperature = 0;
  request.sampling.ignore_eos = true;
  if (apply) {
    request.sampling.logits_processors = {std::make_shared<Processor>(std::move(apply))};
  }
  return request;
}

std::unique_ptr<Engine> processor_engine(int num_draft_tokens, int max_processor_rows) {
  EngineConfig config =
      config_of({.num_draft_tokens = num_draft_tokens, .steps_in_flight = 2}, bundled_model());
  config.max_processor_rows = max_processor_rows;
  std::unique_ptr<Engine> engine;
  const Status made = make_engine(config, &engine);
  EXPECT_TRUE(made.ok()) << made.message();
  return engine;
}

// Leaves exactly one token: a function of the whole history.
int32_t successor(const LogitsContext& context, size_t vocab) {
  int64_t sum = context.choice;
  for (const int32_t id : context.prompt_ids) sum = sum * 31 + id;
  for (const int32_t id : context.output_ids) sum = (sum * 7 + id) % 1000003;
  // Repetitions, so that drafts are made and sometimes right.
  return static_cast<int32_t>(10 + (sum / 3 % 5 + static_cast<int64_t>(context.output_ids.size())) %
                                       static_cast<int64_t>(std::min<size_t>(vocab - 10, 6)));
}

void force_successor(const LogitsContext& context, std::span<float> logits) {
  const int32_t id = successor(context, logits.size());
  std::fill(logits.begin(), logits.end(), -std::numeric_limits<float>::infinity());
  logits[static_cast<size_t>(id)] = 1;
}

// One row at a time, some at once, and more than there are.
TEST(Processors, DecideEveryTokenWithAndWithoutDrafts) {
  std::vector<int32_t> expected;
  const Request request = request_with(force_successor, 40);
  for (int i = 0; i < 40; ++i) {
    expected.push_back(successor({request.prompt_token_ids, expected, 0}, 2048));
  }
  for (const int rows : {1, 3, 64}) {
    for (const int num_draft_tokens : {0, 4}) {
      const auto engine = processor_engine(num_draft_tokens, rows);
      const auto outputs = engine->generate({request, request_with(nullptr), request});
      EXPECT_EQ(outputs[0].token_ids, expected)
          << rows << " rows, " << num_draft_tokens << " drafts";
      EXPECT_EQ(outputs[2].token_ids, expected);
      EXPECT_GE(outputs[0].stats.num_accepted_tokens, num_draft_tokens > 0 ? 1 : 0);
    }
  }
}

// Likes one token that the history tells, so that the model's own logits decide, too.
void like_successor(const LogitsContext& context, std::span<float> logits) {
  logits[static_cast<size_t>(successor(context, logits.size()))] += 9;
}

// They run on the host of rank 0 alone, and every rank draws from what they made of the logits: a
// rank that drew another id would compute other keys and values behind it.
TEST(Processors, DecideOnAllRanks) {
  Request forced = request_with(force_successor, 40), liked = request_with(like_successor, 40);
  Request drawn = liked;
  drawn.sampling.temperature = 0.9f;
  drawn.sampling.seed = 3;
  const std::vector<Request> requests = {forced, request_with(nullptr), liked, drawn};
  const auto ids_of = [&](const Layout& layout, int num_draft_tokens) {
    EngineConfig config =
        config_of({.num_draft_tokens = num_draft_tokens, .steps_in_flight = 2}, bundled_model());
    config.dtype = "float32";
    config.max_processor_rows = 3;
    layout.apply(config);
    std::vector<std::vector<int32_t>> ids;
    const auto engine = start_engine(config);
    if (engine == nullptr) return ids;
    for (const RequestOutput& output : engine->generate(requests)) {
      EXPECT_TRUE(output.status.ok()) << layout.name() << ": " << output.status.message();
      ids.push_back(output.token_ids);
    }
    expect_all_free(*engine);
    return ids;
  };
  const auto expected = ids_of({}, 0);
  EXPECT_NE(expected[2], expected[3]);
  for (const Layout& layout : {Layout{.tp = 2}, Layout{.pp = 2}, Layout{.tp = 2, .pp = 2}}) {
    if (!missing_for(layout).empty()) continue;
    for (const int num_draft_tokens : {0, 4}) {
      EXPECT_EQ(ids_of(layout, num_draft_tokens), expected)
          << layout.name() << ", " << num_draft_tokens << " drafts";
    }
  }
}

TEST(Processors, RunInOrderAndSeeTheChoice) {
  const auto engine = processor_engine(3, 8);
  Request request = request_with(nullptr, 5);
  const auto only = [](int32_t id) {
    return [id](const LogitsContext& context, std::span<float> logits) {
      std::fill(logits.begin(), logits.end(), -std::numeric_limits<float>::infinity());
      logits[static_cast<size_t>(id + context.choice)] = 0;
    };
  };
  request.sampling.n = 2;
  request.sampling.logits_processors = {std::make_shared<Processor>(only(20)),
                                        std::make_shared<Processor>(only(30))};
  const auto outputs = engine->generate({request});
  EXPECT_EQ(outputs[0].token_ids, std::vector<int32_t>(5, 30));
  EXPECT_EQ(outputs[1].token_ids, std::vector<int32_t>(5, 31));
}

// Logprobs stay those of the model.
TEST(Processors, LeaveTheLogprobsAlone) {
  const auto engine = processor_engine(3, 8);
  Request plain = request_with(nullptr, 1);
  plain.sampling.logprobs = 5;
  Request forced = request_with(force_successor, 1);
  forced.sampling.logprobs = 5;
  const auto outputs = engine->generate({plain, forced});
  ASSERT_EQ(outputs[1].logprobs.size(), 1u);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(outputs[1].logprobs[0].top[i].logprob, outputs[0].logprobs[0].top[i].logprob);
  }
  EXPECT_GT(outputs[1].logprobs[0].token.rank, 1);
}

struct Fault {
  const char* name;
  Apply apply;
  const char* said;
};

TEST(Processors, ThatMisbehaveEndTheirOwnRequestOnly) {
  const Fault faults[] = {
      {"throws",
       [](const LogitsContext& context, std::span<float>) {
         if (context.output_ids.size() >= 3) throw std::runtime_error("out of ideas");
       },
       "threw: out of ideas"},
      {"throws a number",
       [](const LogitsContext& context, std::span<float>) {
         if (context.output_ids.size() >= 3) throw 7;
       },
       "no std::exception"},
      {"writes NaN",
       [](const LogitsContext& context, std::span<float> logits) {
         if (context.output_ids.size() >= 3) logits[7] = NAN;
       },
       "NaN or +inf"},
      {"writes +inf",
       [](const LogitsContext& context, std::span<float> logits) {
         if (context.output_ids.size() >= 3) logits[7] = INFINITY;
       },
       "NaN or +inf"},
      {"forbids all",
       [](const LogitsContext& context, std::span<float> logits) {
         if (context.output_ids.size() < 3) return;
         std::fill(logits.begin(), logits.end(), -INFINITY);
       },
       "every token masked"},
  };
  for (const int num_draft_tokens : {0, 4}) {
    const auto engine = processor_engine(num_draft_tokens, 8);
    const auto expected = engine->generate({request_with(nullptr)})[0].token_ids;
    for (const Fault& fault : faults) {
      const auto outputs = engine->generate(
          {request_with(nullptr), request_with(fault.apply), request_with(nullptr)});
      EXPECT_EQ(outputs[0].token_ids, expected) << fault.name;
      EXPECT_EQ(outputs[2].token_ids, expected) << fault.name;
      EXPECT_EQ(outputs[1].finish_reason, FinishReason::kError) << fault.name;
      EXPECT_EQ(outputs[1].token_ids.size(), 3u) << fault.name;
      EXPECT_NE(outputs[1].status.message().find(fault.said), std::string::npos)
          << outputs[1].status.message();
    }
    expect_all_free(*engine);
  }
}

TEST(Processors, NeedRowsAtTheStart) {
  const auto engine = processor_engine(0, 0);
  const RequestOutput refused = engine->generate({request_with(force_successor)})[0];
  EXPECT_NE(refused.status.message().find("--max-processor-rows"), std::string::npos);
  EXPECT_TRUE(engine->generate({request_with(nullptr)})[0].status.ok());
}

// The request owns them until the last step that holds it is over.
TEST(Processors, LiveAsLongAsTheirRequest) {
  const auto engine = processor_engine(2, 8);
  auto alive = std::make_shared<int>(0);
  Request request =
      request_with([alive](const LogitsContext&, std::span<float>) { EXPECT_EQ(*alive, 0); }, 30);
  std::vector<Request> requests;
  requests.push_back(std::move(request));
  (void)engine->generate(std::move(requests));
  expect_all_free(*engine);
  EXPECT_TRUE(test::eventually([&] { return alive.use_count() == 1; }));
}

}  // namespace
}  // namespace foretoken
