#include "kernels/upload.h"

#include "support/step_data.h"

namespace foretoken {
namespace {

using Ids = std::vector<int32_t>;

class UploadTest : public StepTest {
 protected:
  void SetUp() override {
    StepTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    entry_bytes_ = plan_bytes(sizes_.limits);
    ring_ = allocate<char>(static_cast<size_t>(entry_bytes_) * kStepRingSize, MemoryKind::kPinned);
  }

  PlanView entry(uint64_t step) {
    return plan_view(ring_ + static_cast<int64_t>(step % kStepRingSize) * entry_bytes_,
                     sizes_.limits);
  }
  UploadArgs args(uint64_t step) {
    return {
        to_device(std::vector<uint64_t>{step}), ring_, entry_bytes_, plan_, sizes_.limits, batch_};
  }

  int64_t entry_bytes_ = 0;
  char* ring_ = nullptr;
};

TEST_F(UploadTest, AppliesInitsBlocksAndTokensInOrder) {
  StepData d{sizes_};
  d.set_sequence(1, {60, 61, 62, 63, 64, 65}, 5);
  push(d);
  const uint64_t step = 6;
  const PlanView plan = entry(step);
  *plan.header = {step, 2, 1, 3, 5};
  plan.inits[0] = SlotInit{0, 5, 4, 0, {}};
  plan.inits[0].params.seed = 99;
  plan.inits[0].params.max_len = 20;
  // Slot 0 takes block 20 as a prefix hit and block 21 afresh; slot 1 grows by block 22.
  plan.block_updates[0] = {0, 0, 20, 0};
  plan.block_updates[1] = {0, 1, 21, 8};
  plan.block_updates[2] = {1, 2, 22, 3};
  plan.spans[0] = {0, 1, 2, 5, 0, 0};
  plan.spans[1] = {1, 1, 3, 0, 0, 0};
  for (int i = 0; i < 5; ++i) plan.tokens[i] = 40 + i;
  upload(queue(), args(step));
  pull(d);

  EXPECT_EQ(d.params[0].seed, 99u);
  EXPECT_EQ(d.params[0].max_len, 20);
  EXPECT_EQ(d.slots[0].len, 5);
  EXPECT_EQ(d.slots[0].computed, 4);
  EXPECT_EQ(d.slots[0].finished, 0);
  EXPECT_EQ(d.slots[0].num_drafts, 0);
  EXPECT_EQ(d.slots[1].len, 6);
  EXPECT_EQ(d.block_tables[0], 20);
  EXPECT_EQ(d.block_tables[1], 21);
  EXPECT_EQ(d.block_tables[d.sizes.max_blocks + 2], 22);
  const PageHeader& fresh = d.page_headers[21];
  EXPECT_EQ(fresh.parent, 20);
  EXPECT_EQ(fresh.parent_epoch, 1u);
  EXPECT_EQ(fresh.epoch, 8u);
  EXPECT_EQ(fresh.count, 1);
  EXPECT_EQ(d.page_headers[20].epoch, 1u);
  EXPECT_EQ(d.page_headers[20].count, 4);
  EXPECT_EQ(d.page_headers[22].parent, d.block_tables[d.sizes.max_blocks + 1]);
  EXPECT_EQ(d.page_headers[22].count, 0);
  EXPECT_EQ(d.tokens(0), (Ids{40, 41, 42, 43, 44}));
  EXPECT_EQ(d.tokens(1), (Ids{60, 61, 62, 63, 64, 65}));

  std::vector<char> copy = read(plan_, static_cast<size_t>(entry_bytes_));
  const PlanView device = plan_view(copy.data(), sizes_.limits);
  EXPECT_EQ(device.header->step, step);
  EXPECT_EQ(device.header->num_spans, 2);
  EXPECT_EQ(device.spans[1].max_drafts, 3);
}

TEST_F(UploadTest, FirstBlockHasNoParentAndResetsTheSlot) {
  StepData d{sizes_};
  d.set_sequence(2, {1, 2, 3}, 2);
  d.set_drafts(2, {4});
  d.slots[2].finished = static_cast<int32_t>(DeviceFinish::kStop);
  push(d);
  const PlanView plan = entry(0);
  *plan.header = {0, 1, 1, 1, 2};
  plan.inits[0] = SlotInit{2, 2, 0, 0, {}};
  plan.block_updates[0] = {2, 0, 5, 4};
  plan.spans[0] = {2, 2, 0, 2, 0, 0};
  plan.tokens[0] = 8;
  plan.tokens[1] = 9;
  upload(queue(), args(0));
  pull(d);
  EXPECT_EQ(d.page_headers[5].parent, -1);
  EXPECT_EQ(d.page_headers[5].count, 2);
  EXPECT_EQ(d.slots[2].finished, 0);
  EXPECT_EQ(d.slots[2].num_drafts, 0);
  EXPECT_EQ(d.tokens(2), (Ids{8, 9}));
}

TEST_F(UploadTest, APlanOfAnotherStepIsAnError) {
  push(StepData{sizes_});
  entry(5).header->step = 1;
  upload(queue(), args(5));
  const Status status = queue().drain();
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("plan of step 1 found in the ring entry of step 5"),
            std::string::npos)
      << status.message();
}

}  // namespace
}  // namespace foretoken
