#include "engine/request/host_processors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

namespace foretoken {
namespace {

// Writes what it sees.
class Tell final : public LogitsProcessor {
 public:
  void apply(const LogitsContext& context, std::span<float> logits) const override {
    logits[0] = static_cast<float>(context.prompt_ids.size());
    logits[1] = static_cast<float>(context.output_ids.size());
    logits[2] = static_cast<float>(context.output_ids.empty() ? -1 : context.output_ids.back());
    logits[3] = static_cast<float>(context.choice);
  }
};

class Throw final : public LogitsProcessor {
 public:
  void apply(const LogitsContext&, std::span<float>) const override {
    throw std::runtime_error("enough");
  }
};

class Write final : public LogitsProcessor {
 public:
  explicit Write(float value) : value_(value) {}
  void apply(const LogitsContext&, std::span<float> logits) const override { logits[1] = value_; }

 private:
  const float value_;
};

TEST(HostProcessors, RunTheExportedRowsOnly) {
  ProcessorChain chain({std::make_shared<Tell>()});
  HostRow rows[3] = {};
  rows[0] = {reinterpret_cast<uint64_t>(&chain), 2, 3, 5, 0};
  rows[2] = {reinterpret_cast<uint64_t>(&chain), 0, 4, 4, 0};
  std::vector<float> logits(3 * 4, 9.0f);
  std::vector<int32_t> history(3 * 6);
  for (size_t i = 0; i < history.size(); ++i) history[i] = static_cast<int32_t>(i);
  ProcessorCall call{{rows, logits.data(), history.data(), 6}, 3, 4};
  run_processors(&call);
  EXPECT_EQ(logits, (std::vector<float>{3, 2, 4, 2, 9, 9, 9, 9, 4, 0, -1, 0}));
  EXPECT_TRUE(chain.fault().empty());
}

TEST(HostProcessors, AFaultTurnsTheRowIntoNaNAndIsKept) {
  const auto fault_of = [](std::shared_ptr<const LogitsProcessor> processor) {
    ProcessorChain chain({std::move(processor)});
    std::vector<float> logits(4, 1.0f);
    chain.apply({}, logits);
    for (const float logit : logits) EXPECT_TRUE(std::isnan(logit));
    return chain.fault();
  };
  EXPECT_NE(fault_of(std::make_shared<Throw>()).find("threw: enough"), std::string::npos);
  EXPECT_NE(fault_of(std::make_shared<Write>(NAN)).find("NaN"), std::string::npos);
  EXPECT_NE(fault_of(std::make_shared<Write>(INFINITY)).find("+inf"), std::string::npos);
  ProcessorChain fine({std::make_shared<Write>(-INFINITY)});
  std::vector<float> logits(4, 1.0f);
  fine.apply({}, logits);
  EXPECT_TRUE(fine.fault().empty());
  EXPECT_EQ(logits[0], 1.0f);
}

}  // namespace
}  // namespace foretoken
