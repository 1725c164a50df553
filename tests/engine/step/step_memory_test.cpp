#include "engine/step/step_memory.h"

#include "engine/dialled_engine.h"
#include "kernels/devices/open_device.h"
#include "kernels/plan_layout.h"

namespace foretoken {
namespace {

constexpr StepMemoryConfig kConfig{.num_slots = 3,
                                   .num_blocks = 9,
                                   .block_size = 16,
                                   .max_blocks = 4,
                                   .vocab_size = 100,
                                   .max_rows = 32,
                                   .max_logits_rows = 12,
                                   .limits = {3, 32, 20, 50},
                                   .result_limits = {3, 12, 5, 8}};

class StepMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    auto device =
        open_device(engine_test_device() == "cuda" ? DeviceType::kCuda : DeviceType::kCpu, 0, 1);
    ASSERT_TRUE(device.ok()) << device.status().message();
    device_ = std::move(device).value();
  }
  std::unique_ptr<Device> device_;
};

TEST_F(StepMemoryTest, TakesEveryPart) {
  const auto made = StepMemory::make(*device_, kConfig);
  ASSERT_TRUE(made.ok()) << made.status().message();
  const StepMemory& memory = *made.value();
  for (const void* part :
       {static_cast<const void*>(memory.batch.params), static_cast<const void*>(memory.batch.slots),
        static_cast<const void*>(memory.batch.block_tables),
        static_cast<const void*>(memory.batch.token_pages),
        static_cast<const void*>(memory.batch.page_headers),
        static_cast<const void*>(memory.tensors.counts),
        static_cast<const void*>(memory.tensors.spans),
        static_cast<const void*>(memory.tensors.token_ids),
        static_cast<const void*>(memory.tensors.positions),
        static_cast<const void*>(memory.tensors.row_slot),
        static_cast<const void*>(memory.tensors.kv_slot),
        static_cast<const void*>(memory.tensors.logits_rows),
        static_cast<const void*>(memory.tensors.sampled), static_cast<const void*>(memory.plan),
        static_cast<const void*>(memory.result), static_cast<const void*>(memory.step_counter),
        static_cast<const void*>(memory.plan_ring), static_cast<const void*>(memory.result_ring)}) {
    EXPECT_NE(part, nullptr);
  }
  EXPECT_EQ(memory.batch.num_slots, 3);
  EXPECT_EQ(memory.batch.max_blocks, 4);
  EXPECT_EQ(memory.batch.block_size, 16);
  EXPECT_EQ(memory.published.word->load(), 0u);
  EXPECT_EQ(memory.plan_entry_bytes, plan_bytes(kConfig.limits));
  EXPECT_EQ(memory.result_entry_bytes, result_bytes(kConfig.result_limits));
  EXPECT_EQ(memory.batch.window_tables, nullptr);
  EXPECT_EQ(memory.tensors.window_slot, nullptr);
}

TEST_F(StepMemoryTest, ListsHaveARowForEverySlot) {
  const auto made = StepMemory::make(*device_, kConfig);
  ASSERT_TRUE(made.ok()) << made.status().message();
  const SlotLists& lists = made.value()->batch.lists;
  EXPECT_EQ(lists.mask_words, 4);
  EXPECT_NE(lists.logit_bias, nullptr);
  EXPECT_NE(lists.bad_words, nullptr);
  EXPECT_NE(lists.allowed_ids, nullptr);
}

TEST_F(StepMemoryTest, AWindowedGroupHasTablesOfItsOwn) {
  StepMemoryConfig config = kConfig;
  config.windowed = true;
  const auto made = StepMemory::make(*device_, config);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_NE(made.value()->batch.window_tables, nullptr);
  EXPECT_NE(made.value()->batch.window_tables, made.value()->batch.block_tables);
  EXPECT_NE(made.value()->tensors.window_slot, nullptr);
  EXPECT_EQ(made.value()->block_table_bytes(), 2 * (3 + 1) * 4 * 4);
}

// What is counted before there is any memory is what is taken then.
TEST_F(StepMemoryTest, CountsWhatItWouldTake) {
  StepMemoryConfig config = kConfig;
  const auto counted = StepMemory::count(config);
  EXPECT_EQ(counted->batch.params, nullptr);
  EXPECT_EQ(counted->plan_ring, nullptr);
  EXPECT_EQ(counted->batch.num_slots, 3);
  const auto made = StepMemory::make(*device_, config);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(counted->device_bytes(), made.value()->device_bytes());
  config.num_blocks = 0;
  EXPECT_EQ(StepMemory::count(config)->device_bytes(),
            made.value()->device_bytes() - made.value()->token_page_bytes());
}

TEST_F(StepMemoryTest, ReportsItsSizes) {
  const auto made = StepMemory::make(*device_, kConfig);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made.value()->token_page_bytes(),
            9 * (16 * 4 + static_cast<int64_t>(sizeof(PageHeader))));
  EXPECT_EQ(made.value()->block_table_bytes(), (3 + 1) * 4 * 4);
}

TEST_F(StepMemoryTest, NamesWhatDoesNotFit) {
  StepMemoryConfig config = kConfig;
  config.num_slots = 1 << 30;
  config.max_blocks = 1 << 30;
  const auto made = StepMemory::make(*device_, config);
  EXPECT_EQ(made.status().code(), StatusCode::kResourceExhausted);
}

TEST_F(StepMemoryTest, AResetForgetsSequencesAndSteps) {
  const auto made = StepMemory::make(*device_, kConfig);
  ASSERT_TRUE(made.ok()) << made.status().message();
  StepMemory& memory = *made.value();
  auto queue = device_->make_queue();
  ASSERT_TRUE(queue.ok());
  constexpr size_t kSlots = 4;
  constexpr size_t kTable = kSlots * 4;
  queue.value()->fill(memory.batch.slots, 1, kSlots * sizeof(SlotState));
  queue.value()->fill(memory.batch.block_tables, 1, kTable * sizeof(int32_t));
  queue.value()->fill(memory.batch.page_headers, 1, 9 * sizeof(PageHeader));
  queue.value()->fill(memory.step_counter, 1, sizeof(uint64_t));
  queue.value()->record(memory.published, 7);
  memory.reset(*queue.value());
  SlotState slot{};
  slot.len = 1;
  std::vector<int32_t> table(kTable, 1);
  PageHeader header{};
  header.count = 1;
  uint64_t step = 1;
  queue.value()->copy(&slot, memory.batch.slots + kSlots - 1, sizeof(slot));
  queue.value()->copy(table.data(), memory.batch.block_tables, kTable * sizeof(int32_t));
  queue.value()->copy(&header, memory.batch.page_headers + 8, sizeof(header));
  queue.value()->copy(&step, memory.step_counter, sizeof(step));
  ASSERT_TRUE(queue.value()->drain().ok());
  EXPECT_EQ(slot.len, 0);
  EXPECT_EQ(table, std::vector<int32_t>(kTable));
  EXPECT_EQ(header.count, 0);
  EXPECT_EQ(step, 0u);
  EXPECT_EQ(memory.published.word->load(), 0u);
}

}  // namespace
}  // namespace foretoken
