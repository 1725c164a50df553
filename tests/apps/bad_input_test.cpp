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

TEST(BadInput, MissingModelFolder) {
  expect_refused(generate("/nonexistent/model", {"--prompt", "A"}), {1, "/nonexistent/model"});
}

TEST(BadInput, MissingWeights) {
  const ScratchFolder scratch;
  const fs::path model = scratch.copy_model();
  fs::remove(model / "model.safetensors");
  expect_refused(generate(model, {"--prompt", "A"}), {1, "safetensors"});
}

TEST(BadInput, MissingPromptFiles) {
  expect_refused(generate(bundled_model(), {"--prompt-file", "/nonexistent/p"}),
                 {1, "/nonexistent/p"});
  expect_refused(generate(bundled_model(), {"--jsonl", "/nonexistent/j"}), {1, "/nonexistent/j"});
}

TEST(BadInput, TruncatedSafetensors) {
  const ScratchFolder scratch;
  const fs::path model = scratch.copy_model();
  const fs::path file = model / "model.safetensors";
  fs::resize_file(file, fs::file_size(file) / 2);
  expect_refused(generate(model, {"--prompt", "A"}), {1, "model.safetensors"});
  fs::resize_file(file, 5);
  expect_refused(generate(model, {"--prompt", "A"}), {1, "model.safetensors"});
}

TEST(BadInput, HugeSafetensorsHeader) {
  const ScratchFolder scratch;
  const fs::path model = scratch.copy_model();
  std::string bytes = read_file(model / "model.safetensors");
  bytes.replace(0, 8, std::string("\0\0\0\0\0\0\0\x10", 8));
  write_file(model / "model.safetensors", bytes);
  expect_refused(generate(model, {"--prompt", "A"}), {1, "model.safetensors"});
}

TEST(BadInput, BrokenTokenizer) {
  const ScratchFolder scratch;
  const fs::path model = scratch.copy_model();
  write_file(model / "tokenizer.json", "{\"model\": ");
  expect_refused(generate(model, {"--prompt", "A"}), {1, "tokenizer.json"});
}

TEST(BadInput, BrokenConfig) {
  const ScratchFolder scratch;
  const fs::path model = scratch.copy_model();
  write_file(model / "config.json", "[1, 2");
  expect_refused(generate(model, {"--prompt", "A"}), {1, "config.json"});
}

TEST(BadInput, TemplateErrors) {
  const ScratchFolder scratch;
  const fs::path model = scratch.copy_model();
  const fs::path file = model / "tokenizer_config.json";
  set_field(file, "chat_template", "{{ raise_exception('only odd days') }}");
  expect_refused(generate(model, {"--chat", "--prompt", "A"}), {1, "only odd days"});
  set_field(file, "chat_template", "{% for %}");
  expect_refused(generate(model, {"--chat", "--prompt", "A"}), {1, "template"});
}

TEST(BadInput, UnknownArchitecture) {
  const ScratchFolder scratch;
  const fs::path model = scratch.copy_model();
  set_field(model / "config.json", "architectures", {"RemarkableForCausalLM"});
  expect_refused(generate(model, {"--prompt", "A"}), {1, "RemarkableForCausalLM"});
}

TEST(BadInput, PromptLongerThanTheContext) {
  expect_refused(generate(bundled_model(), {"--max-model-len", "16", "--prompt",
                                            "one two three four five six seven eight nine ten "
                                            "eleven twelve thirteen fourteen fifteen sixteen"}),
                 {1, "max_model_len"});
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

TEST(BadInput, SpeculativeConfig) {
  const auto with = [](const std::string& json) {
    return generate(bundled_model(), {"--prompt", "A", "--speculative-config", json});
  };
  expect_refused(with("{\"method\": "), {1, "not valid JSON"});
  expect_refused(with("[]"), {1, "JSON object"});
  expect_refused(with(R"({"method":"ngram","num_speculative_tokens":"4"})"),
                 {1, "'num_speculative_tokens' must be an integer"});
  expect_refused(with(R"({"method":"ngram","num_speculative_tokens":4,"quantization":"fp8"})"),
                 {1, "'quantization' is not supported yet"});
  expect_refused(with(R"({"method":"ngram","num_speculative_tokens":4,"lookup":1})"),
                 {1, "'lookup' is unknown"});
  expect_refused(with(R"({"method":"ngram"})"), {1, "'num_speculative_tokens' is missing"});
  expect_refused(with(R"({"method":"divination","num_speculative_tokens":4})"), {1, "divination"});
}

TEST(BadInput, UsageErrors) {
  expect_refused({}, {2, "subcommand"});
  expect_refused({"generate"}, {2, "--prompt"});
  expect_refused({"generate", "--prompt", "A", "--nonsense"}, {2, "--nonsense"});
  expect_refused({"generate", "--prompt", "A", "--max-model-len", "1x"}, {2, "--max-model-len"});
  expect_refused({"generate", "--prompt", "A", "--max-num-seqs", "-1"}, {2, "--max-num-seqs"});
  expect_refused({"bench", "latency", "--num-iters", "0"}, {2, "--num-iters"});
}

TEST(BadInput, UnknownDeviceAndFormats) {
  expect_refused(generate(bundled_model(), {"--prompt", "A", "--device", "abacus"}), {1, "abacus"});
  expect_refused(generate(bundled_model(), {"--prompt", "A", "--dtype", "int1"}), {1, "int1"});
  expect_refused(generate(bundled_model(), {"--prompt", "A", "--load-format", "tape"}),
                 {1, "tape"});
  expect_refused(generate(bundled_model(), {"--prompt", "A", "--attention-backend", "none-such"}),
                 {1, "none-such"});
}

}  // namespace
}  // namespace foretoken
