#include "serve/flow/serve_rig.h"

#include <filesystem>

#include "engine/engine_impl.h"
#include "support/folders.h"

namespace foretoken::test {

StepGate& ServeRig::steps() {
  static StepGate steps;
  return steps;
}

Engine& ServeRig::engine() {
  static const std::unique_ptr<Engine> made = []() -> std::unique_ptr<Engine> {
    StepGate& gate = steps();
    EngineConfig config;
    config.model = std::string(foretoken::kSourceFolder) + "/models/foretoken-7m";
    config.cpu_threads = 1;
    config.max_num_seqs = 8;
    config.max_model_len = 512;
    config.enable_sleep_mode = true;
    SpeculativeConfig ngram;
    ngram.method = "ngram";
    ngram.num_speculative_tokens = 3;
    ngram.length_policy = "fixed";
    config.speculative = {ngram};
    auto engine = EngineImpl::create(
        config, {.on_result = [&](uint64_t, const Span&, const SpanResult&) { gate.pass(); }});
    EXPECT_TRUE(engine.ok()) << engine.status().message();
    return engine.ok() ? std::move(engine).value() : nullptr;
  }();
  return *made;
}

ServeConfig ServeRig::base_config() {
  ServeConfig config;
  config.model_names = {"tiny", "other"};
  config.model_folder = std::string(foretoken::kSourceFolder) + "/models/foretoken-7m";
  config.answers.refuse_unparsed_tools = true;
  config.tokenizer_info = true;
  return config;
}

void ServeRig::start(ServeConfig config) {
  TearDown();
  service_ = std::make_unique<Service>(engine(), std::move(config), false);
  Result<http::Router> router = http::Router::make(service_->routes());
  ASSERT_TRUE(router.ok()) << router.status().message();
  router_ = std::move(router).value();
}

void ServeRig::TearDown() {
  steps().open();
  if (service_ == nullptr) return;
  EXPECT_TRUE(wait_idle());
  service_->stop();
  router_ = {};
  service_.reset();
}

void ServeRig::wait_for_engine() {
  EXPECT_TRUE(eventually([] {
    const EngineStats stats = engine().stats();
    return stats.num_free_slots == stats.num_total_slots && stats.num_running_requests == 0;
  })) << "slots are in use still";
}

bool ServeRig::wait_idle() { return context().gate.wait_empty(kPatience); }

std::shared_ptr<FakeExchange> ServeRig::begin(const std::string& method, const std::string& path,
                                              const std::string& body, http::Headers query,
                                              http::Headers headers) {
  auto exchange = FakeExchange::make(body, path);
  exchange->request_.query = std::move(query);
  for (auto& header : headers) exchange->request_.headers.push_back(std::move(header));
  exchange->request_.method = method;
  http::RouteMatch match = router_.match(method, path);
  if (match.route == nullptr) {
    ADD_FAILURE() << "no route " << method << " " << path;
    return exchange;
  }
  exchange->request_.path_values = std::move(match.path_values);
  match.route->handler(exchange);
  return exchange;
}

std::shared_ptr<FakeExchange> ServeRig::send(const std::string& method, const std::string& path,
                                             const std::string& body) {
  auto exchange = begin(method, path, body);
  EXPECT_TRUE(exchange->wait()) << method << " " << path << " " << body;
  return exchange;
}

json ServeRig::post(const std::string& path, const json& body, int status) {
  const auto exchange = send("POST", path, body.dump());
  EXPECT_EQ(exchange->status(), status) << exchange->body();
  return json::parse(exchange->body(), nullptr, false);
}

std::vector<json> ServeRig::events(const std::string& stream) {
  std::vector<json> all;
  size_t begin = 0;
  while ((begin = stream.find("data: ", begin)) != std::string::npos) {
    begin += 6;
    const std::string line = stream.substr(begin, stream.find('\n', begin) - begin);
    if (line != "[DONE]") all.push_back(json::parse(line));
  }
  return all;
}

}  // namespace foretoken::test
