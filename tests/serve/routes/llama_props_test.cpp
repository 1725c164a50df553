#include "serve/routes/llama_props.h"

#include <gtest/gtest.h>

#include "serve/flow/serve_rig.h"

namespace foretoken {
namespace {

using test::json;

class LlamaProps : public test::ServeRig {};

TEST_F(LlamaProps, TellOfTheModel) {
  const json props = json::parse(send("GET", "/props")->body());
  EXPECT_EQ(props["total_slots"], 8);
  EXPECT_EQ(props["model_path"], "tiny");
  EXPECT_EQ(props["bos_token"], "<|endoftext|>");
  EXPECT_NE(props["chat_template"].get<std::string>().find("<|assistant|>"), std::string::npos);
  EXPECT_EQ(props["default_generation_settings"]["params"]["n_predict"], -1);
}

TEST_F(LlamaProps, ASlotForEachSequence) {
  const json slots = json::parse(send("GET", "/slots")->body());
  ASSERT_EQ(slots.size(), 8u);
  EXPECT_EQ(slots[7]["id"], 7);
  EXPECT_EQ(slots[0]["n_ctx"], 512);
}

}  // namespace
}  // namespace foretoken
