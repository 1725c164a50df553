#include <spdlog/fmt/fmt.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/bench/bench_command.h"
#include "apps/bench/bench_run.h"
#include "apps/bench/pair_stats.h"
#include "apps/options/engine_options.h"
#include "apps/options/sampling_options.h"
#include "apps/terminal/report.h"

namespace foretoken {
namespace {

using Json = nlohmann::ordered_json;

struct GrammarBenchOptions {
  EngineOptions engine;
  std::string schemas;
  int every = 1;
  int max_tokens = 256;
  double temperature = 0;
  int rounds = 1;
  bool any_whitespace = false;
  SpeculativeParams speculative;
  std::string output_json;
};

struct Schema {
  std::string name;
  std::string text;
};

// JSON lines with "name" and "schema".
Result<std::vector<Schema>> read_schemas(const GrammarBenchOptions& options) {
  std::ifstream in(options.schemas);
  if (!in) return not_found("--schemas: " + options.schemas + " cannot be read");
  std::vector<Schema> schemas;
  int number = 0;
  for (std::string line; std::getline(in, line); ++number) {
    if (number % options.every != 0) continue;
    const Json object = Json::parse(line, nullptr, false);
    if (!object.is_object() || !object.contains("schema")) {
      return invalid_argument("--schemas: line " + std::to_string(number + 1) +
                              " is no JSON object with a \"schema\"");
    }
    schemas.push_back({object.value("name", std::to_string(number)), object["schema"].dump()});
  }
  if (schemas.empty()) return invalid_argument("--schemas: " + options.schemas + " has no line");
  return schemas;
}

Request request_for(const GrammarBenchOptions& options, const Schema& schema, size_t index) {
  Request request;
  request.request_id = "schema-" + std::to_string(index);
  request.prompt = "An example of " + schema.name + " as JSON:\n";
  request.sampling.max_tokens = options.max_tokens;
  request.sampling.temperature = static_cast<float>(options.temperature);
  request.sampling.seed = index;
  request.speculative = options.speculative;
  StructuredOutputs& form = request.sampling.structured_outputs.emplace();
  form.json = schema.text;
  form.disable_any_whitespace = !options.any_whitespace;
  return request;
}

struct Round {
  std::vector<RequestOutput> outputs;
  double seconds = 0;
  RequestStats stats;
  double rate() const { return static_cast<double>(stats.num_output_tokens) / seconds; }
};

Round run_round(Engine& engine, std::vector<Request> requests) {
  const auto begin = std::chrono::steady_clock::now();
  Round round;
  round.outputs = engine.generate(std::move(requests));
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  round.seconds = elapsed.count();
  for (const RequestOutput& output : round.outputs) {
    round.stats += output.stats;
  }
  return round;
}

// The same prompts and lengths without grammars.
std::vector<Request> plain_requests(std::vector<Request> requests, const Round& lengths) {
  std::vector<Request> plain;
  for (size_t i = 0; i < requests.size(); ++i) {
    if (lengths.outputs[i].token_ids.empty()) continue;
    Request& request = plain.emplace_back(std::move(requests[i]));
    request.sampling.structured_outputs.reset();
    request.sampling.ignore_eos = true;
    request.sampling.max_tokens = static_cast<int>(lengths.outputs[i].token_ids.size());
  }
  return plain;
}

// Steps count for each sequence in them.
Json round_json(const Round& round) {
  return {{"seconds", round.seconds},
          {"output_tokens", round.stats.num_output_tokens},
          {"steps", round.stats.num_steps},
          {"drafted", round.stats.num_draft_tokens},
          {"accepted", round.stats.num_accepted_tokens}};
}

Json output_json(const Schema& schema, const RequestOutput& output) {
  return {{"name", schema.name},
          {"text", output.text},
          {"token_ids", output.token_ids},
          {"finish_reason", finish_reason_name(output.finish_reason)},
          {"error", output.status.ok() ? std::string() : output.status.message()},
          {"drafted", output.stats.num_draft_tokens},
          {"accepted", output.stats.num_accepted_tokens},
          {"steps", output.stats.num_steps}};
}

Status run_grammar(const GrammarBenchOptions& options) {
  FT_ASSIGN_OR_RETURN(const std::vector<Schema> schemas, read_schemas(options));
  FT_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, start_engine(options.engine));
  std::vector<Request> requests;
  for (size_t i = 0; i < schemas.size(); ++i) {
    requests.push_back(request_for(options, schemas[i], i));
  }
  Round first;
  std::vector<double> with, without;
  Json rounds = Json::array();
  for (int i = 0; i < options.rounds; ++i) {
    Round round = run_round(*engine, requests);
    const Round plain = run_round(*engine, plain_requests(requests, round));
    with.push_back(round.rate());
    without.push_back(plain.rate());
    rounds.push_back({{"with", round_json(round)}, {"without", round_json(plain)}});
    if (i == 0) first = std::move(round);
  }
  std::vector<double> ratios;
  for (size_t i = 0; i < with.size(); ++i) ratios.push_back(with[i] / without[i]);
  fmt::print("{} schemas, {} tokens: {:.1f} tokens/s with grammars, {:.1f} without; ratio {:.3f}\n",
             schemas.size(), first.stats.num_output_tokens, median(with), median(without),
             median(ratios));
  if (options.output_json.empty()) return {};
  Json outputs = Json::array();
  for (size_t i = 0; i < schemas.size(); ++i) {
    outputs.push_back(output_json(schemas[i], first.outputs[i]));
  }
  return write_bench_json({{"tokens_per_second", with},
                           {"tokens_per_second_without", without},
                           {"ratio", median(ratios)},
                           {"rounds", std::move(rounds)},
                           {"drafter", engine->info().drafter},
                           {"outputs", std::move(outputs)}},
                          options.output_json);
}

}  // namespace

void add_bench_grammar(CLI::App& bench, std::function<int()>* run) {
  CLI::App* command = bench.add_subcommand(
      "grammar", "Outputs of JSON schemas, and their speed beside outputs without");
  auto options = std::make_shared<GrammarBenchOptions>();
  command->add_option("--schemas", options->schemas, "JSON lines with \"name\" and \"schema\"")
      ->required();
  command->add_option("--every", options->every, "Take every n-th line only")
      ->capture_default_str()
      ->check(at_least(1));
  command->add_option("--max-tokens", options->max_tokens, "Most tokens of an output")
      ->capture_default_str()
      ->check(at_least(1));
  command->add_option("--temperature", options->temperature, "0: always the likeliest token")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 100.0));
  command->add_option("--rounds", options->rounds, "Pairs of runs with and without grammars")
      ->capture_default_str()
      ->check(at_least(1));
  command->add_flag("--any-whitespace", options->any_whitespace,
                    "Allow whitespace between the tokens of JSON");
  add_output_json(*command, options->output_json);
  add_speculative_flag(*command, options->speculative);
  options->engine.add_to(*command);
  command->callback(
      [options, run] { *run = [options] { return bench_exit_code(run_grammar(*options)); }; });
}

}  // namespace foretoken
