#include <gtest/gtest.h>

#include "apps/command_run.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

struct Expectation {
  int exit_code;
  std::string part_of_message;
};

// One clear line, the exit code, no crash, nothing on stdout.
void expect_refused(const std::vector<std::string>& arguments, const Expectation& wanted) {
  const CommandResult result = run_command(arguments);
  EXPECT_EQ(result.exit_code, wanted.exit_code) << "signal " << result.signal << "\n" << result.err;
  EXPECT_EQ(result.out, "");
  const std::vector<std::string> errors = result.errors();
  ASSERT_EQ(errors.size(), 1u) << result.err;
  EXPECT_NE(errors[0].find(wanted.part_of_message), std::string::npos) << errors[0];
  EXPECT_EQ(result.err.find("terminate called"), std::string::npos) << result.err;
}

std::vector<std::string> generate(const fs::path& model, const std::vector<std::string>& more) {
  std::vector<std::string> all = {"generate", "--model", model.string(), "--log-level", "error"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

// Replaces one value of a JSON file of a model folder.
void set_field(const fs::path& file, const std::string& name, const nlohmann::json& value) {
  nlohmann::json object = nlohmann::json::parse(read_file(file));
  object[name] = value;
  write_file(file, object.dump());
}

TEST(BadInput, UnknownCommand) {
  expect_refused({"serv"}, {2, "there is no command 'serv'; did you mean 'serve'?"});
  expect_refused({"bench", "latncy"},
                 {2,
                  "there is no command 'bench latncy'; did you mean 'latency'? (see foretoken "
                  "bench --help)"});
  expect_refused({"bench", "nope"},
                 {2, "there is no command 'bench nope'; take one of latency, throughput, "});
}

// CLI11 would take the flag for the value, and the value of what is unknown for a model.
TEST(BadInput, FlagsAreNoValues) {
  expect_refused({"serve", "--api-key", "--model", "/nonexistent"},
                 {2, "--api-key needs a value, but the flag --model follows"});
  expect_refused({"serve", "--served-model-name", "--port", "1"},
                 {2, "(see foretoken serve --help)"});
  expect_refused({"serve", "--model", "/nonexistent", "--prot", "80"},
                 {2, "unknown flag --prot; did you mean '--port'?"});
  expect_refused({"serve", "--port"}, {2, "--port needs a value"});
  expect_refused({"bench", "latency", "--modl", "x"},
                 {2, "unknown flag --modl; did you mean '--model'? (see foretoken bench latency"});
  expect_refused(generate("/nonexistent/model", {"--prompt=--port"}), {1, "/nonexistent/model"});
  expect_refused(generate("/nonexistent/model", {"--prompt", "--a text"}),
                 {1, "/nonexistent/model"});
}

TEST(BadInput, MissingModelFolder) {
  expect_refused(generate("/nonexistent/model", {"--prompt", "A"}), {1, "/nonexistent/model"});
}

TEST(BadInput, MissingWeights) {
  const test::ScratchFolder scratch;
  const fs::path model = copy_model(scratch);
  fs::remove(model / "model.safetensors");
  expect_refused(generate(model, {"--prompt", "A"}), {1, "safetensors"});
}

TEST(BadInput, MissingPromptFiles) {
  expect_refused(generate(bundled_model(), {"--prompt-file", "/dev/zero"}),
                 {1, "'/dev/zero' is a device without an end; name a file"});
  expect_refused(generate(bundled_model(), {"--prompt-file", "/nonexistent/p"}),
                 {1, "/nonexistent/p"});
  expect_refused(generate(bundled_model(), {"--jsonl", "/nonexistent/j"}), {1, "/nonexistent/j"});
}

TEST(BadInput, TruncatedSafetensors) {
  const test::ScratchFolder scratch;
  const fs::path model = copy_model(scratch);
  const fs::path file = model / "model.safetensors";
  fs::resize_file(file, fs::file_size(file) / 2);
  expect_refused(generate(model, {"--prompt", "A"}), {1, "model.safetensors"});
  fs::resize_file(file, 5);
  expect_refused(generate(model, {"--prompt", "A"}), {1, "model.safetensors"});
}

TEST(BadInput, HugeSafetensorsHeader) {
  const test::ScratchFolder scratch;
  const fs::path model = copy_model(scratch);
  std::string bytes = read_file(model / "model.safetensors");
  bytes.replace(0, 8, std::string("\0\0\0\0\0\0\0\x10", 8));
  write_file(model / "model.safetensors", bytes);
  expect_refused(generate(model, {"--prompt", "A"}), {1, "model.safetensors"});
}

TEST(BadInput, BrokenTokenizer) {
  const test::ScratchFolder scratch;
  const fs::path model = copy_model(scratch);
  write_file(model / "tokenizer.json", "{\"model\": ");
  expect_refused(generate(model, {"--prompt", "A"}), {1, "tokenizer.json"});
}

TEST(BadInput, BrokenConfig) {
  const test::ScratchFolder scratch;
  const fs::path model = copy_model(scratch);
  write_file(model / "config.json", "[1, 2");
  expect_refused(generate(model, {"--prompt", "A"}), {1, "config.json"});
}

TEST(BadInput, TemplateErrors) {
  const test::ScratchFolder scratch;
  const fs::path model = copy_model(scratch);
  const fs::path file = model / "tokenizer_config.json";
  set_field(file, "chat_template", "{{ raise_exception('only odd days') }}");
  expect_refused(generate(model, {"--chat", "--prompt", "A"}), {1, "only odd days"});
  set_field(file, "chat_template", "{% for %}");
  expect_refused(generate(model, {"--chat", "--prompt", "A"}), {1, "template"});
}

TEST(BadInput, UnknownArchitecture) {
  const test::ScratchFolder scratch;
  const fs::path model = copy_model(scratch);
  set_field(model / "config.json", "architectures", {"RemarkableForCausalLM"});
  expect_refused(generate(model, {"--prompt", "A"}), {1, "RemarkableForCausalLM"});
}

TEST(BadInput, PromptLongerThanTheContext) {
  expect_refused(generate(bundled_model(), {"--max-model-len", "16", "--prompt",
                                            "one two three four five six seven eight nine ten "
                                            "eleven twelve thirteen fourteen fifteen sixteen"}),
                 {1, "--max-model-len"});
}

TEST(BadInput, TopPAboveOne) {
  expect_refused(generate(bundled_model(), {"--prompt", "A", "--top-p", "7"}), {1, "top_p"});
}

TEST(BadInput, EmptyPrompt) {
  expect_refused(generate(bundled_model(), {"--prompt", ""}), {1, "empty"});
}

TEST(BadInput, OutOfKvMemory) {
  expect_refused(generate(bundled_model(), {"--prompt", "A", "--kv-cache-memory-bytes", "64K"}),
                 {1, "--kv-cache-memory-bytes"});
  expect_refused(generate(bundled_model(), {"--prompt", "A", "--num-gpu-blocks-override", "2",
                                            "--max-tokens", "1000"}),
                 {1, "blocks"});
}

TEST(BadInput, OneRequestBeyondKvMemoryLeavesTheOthersAlone) {
  const CommandResult result =
      run_command(generate(bundled_model(), {"--prompt", "A", "--prompt", std::string(400, 'x'),
                                             "--prompt", "B", "--num-gpu-blocks-override", "4",
                                             "--max-tokens", "8", "--json", "--ignore-eos"}));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.errors().size(), 1u) << result.err;
  const std::vector<nlohmann::json> lines = result.json_lines();
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0]["token_ids"].size(), 8u);
  EXPECT_FALSE(lines[1]["error"].is_null());
  EXPECT_EQ(lines[2]["token_ids"].size(), 8u);
}

TEST(BadInput, UsageErrors) {
  expect_refused({}, {2, "subcommand"});
  expect_refused({"generate"}, {2, "--prompt"});
  expect_refused({"generate", "--prompt", "A", "--nonsense"}, {2, "--nonsense"});
  expect_refused({"generate", "--prompt", "A", "--max-model-len", "1x"}, {2, "--max-model-len"});
  expect_refused({"generate", "--prompt", "A", "--max-num-seqs", "-1"}, {2, "--max-num-seqs"});
  expect_refused({"bench", "latency", "--num-iters", "0"}, {2, "--num-iters"});
}

TEST(BadInput, UnknownFlagsComeWithTheNearest) {
  expect_refused({"generate", "--prompt", "A", "--temprature", "0"},
                 {2, "unknown flag --temprature; did you mean '--temperature'?"});
  expect_refused({"generate", "--prompt", "A", "--max_modl_len=5"}, {2, "'--max-model-len'"});
  expect_refused({"bench", "latency", "--batchsize", "2"}, {2, "'--batch-size'"});
  expect_refused({"generate", "--prompt", "A", "--speculate-with-tea-leaves"},
                 {2, "unknown flag --speculate-with-tea-leaves"});
}

// The model folder does not exist: whatever complains comes before it is looked at.
TEST(BadInput, SamplingFlagsAreCheckedBeforeTheModelLoads) {
  const std::vector<std::pair<std::vector<std::string>, Expectation>> bad = {
      {{"--n", "0"}, {1, "n is 0"}},
      {{"--max-tokens", "0"}, {1, "max_tokens is 0"}},
      {{"--temperature", "-1"}, {1, "temperature is -1"}},
      {{"--top-p", "7"}, {1, "top_p is 7"}},
      {{"--top-k", "-5"}, {1, "top_k is -5"}},
      {{"--min-p", "1.5"}, {1, "min_p is 1.5"}},
      {{"--presence-penalty", "9"}, {1, "presence_penalty is 9"}},
      {{"--frequency-penalty", "9"}, {1, "frequency_penalty is 9"}},
      {{"--repetition-penalty", "0"}, {1, "repetition_penalty is 0"}},
      {{"--logprobs", "-2"}, {1, "logprobs is -2"}},
      {{"--logit-bias", "{\"3\": \"x\"}"}, {1, "'logit_bias' must be an object"}},
      {{"--logit-bias", "{"}, {2, "--logit-bias"}},
      {{"--sampling-seed", "-1"}, {2, "--sampling-seed: must be an integer from 0"}},
      {{"--seed", "-1"}, {2, "--seed: must be an integer from 0"}},
      {{"--seed", "18446744073709551616"}, {2, "--seed: must be an integer from 0"}},
      {{"--allowed-token-ids", ""}, {2, "--allowed-token-ids: must be token ids like 5,17"}},
      {{"--temperature", ""}, {2, "--temperature has an empty value; give one, or leave"}},
      {{"--top-p=", "x"}, {2, "--top-p has an empty value"}},
      {{"--max-num-seqs", ""}, {2, "--max-num-seqs has an empty value"}},
      {{"--model", ""}, {2, "--model has an empty value"}},
      {{"--stop-token-ids", "0x5"}, {2, "--stop-token-ids: must be token ids like 5,17"}},
      {{"--max-model-len", "-5"}, {2, "--max-model-len: must be at least 1, or auto"}},
      {{"--scheduling-policy", "lottery"}, {2, "--scheduling-policy"}},
      {{"--hf-overrides", "[]"}, {1, "--hf-overrides"}},
      {{"--override-generation-config", "{"}, {1, "--override-generation-config"}},
      {{"--tools", "/nonexistent/tools.json"}, {1, "/nonexistent/tools.json"}},
      {{"--tools", "[1]"}, {1, "--tools"}},
      {{"--chat-template-kwargs", "3"}, {1, "--chat-template-kwargs"}}};
  for (const auto& [flags, wanted] : bad) {
    std::vector<std::string> arguments = {"--prompt", "A"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    SCOPED_TRACE(flags[0] + " " + flags[1]);
    expect_refused(generate("/nonexistent/model", arguments), wanted);
  }
}

TEST(BadInput, UnknownDeviceAndFormats) {
  expect_refused(generate(bundled_model(), {"--prompt", "A", "--device", "abacus"}), {1, "abacus"});
  expect_refused(generate(bundled_model(), {"--prompt", "A", "--dtype", "int1"}), {1, "int1"});
  expect_refused(generate(bundled_model(), {"--prompt", "A", "--load-format", "tape"}),
                 {1, "tape"});
  expect_refused(generate(bundled_model(), {"--prompt", "A", "--load-format", "tape"}),
                 {1, "dummy-q4_k_m"});
  expect_refused(generate(bundled_model(), {"--prompt", "A", "--kv-cache-dtype", "nvfp4"}),
                 {1, "nvfp4"});
  expect_refused(generate(bundled_model(), {"--prompt", "A", "--kv-cache-dtype", "nvfp4"}),
                 {1, "use auto, int8 or fp8"});
  expect_refused(generate(bundled_model(), {"--prompt", "A", "--attention-backend", "none-such"}),
                 {1, "none-such"});
}

}  // namespace
}  // namespace foretoken
