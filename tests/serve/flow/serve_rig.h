#pragma once
#include <foretoken/engine.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "http/server/router.h"
#include "serve/flow/fake_exchange.h"
#include "serve/flow/step_gate.h"
#include "serve/routes/service.h"

namespace foretoken::test {

using json = nlohmann::ordered_json;

// The bundled model behind the server's handlers, without a network.
class ServeRig : public testing::Test {
 protected:
  // One engine for all tests of a program.
  static Engine& engine();
  // Its steps, which each test finds and leaves open.
  static StepGate& steps();
  static ServeConfig base_config();

  void SetUp() override { start(base_config()); }
  void TearDown() override;
  void start(ServeConfig config);
  Service& service() { return *service_; }
  ServeContext& context() { return service_->context(); }

  // Sends a request to the handler of its route and waits for the answer.
  std::shared_ptr<FakeExchange> send(const std::string& method, const std::string& path,
                                     const std::string& body = "");
  // Without waiting.
  std::shared_ptr<FakeExchange> begin(const std::string& method, const std::string& path,
                                      const std::string& body, http::Headers query = {},
                                      http::Headers headers = {});
  // A whole answer as JSON.
  json post(const std::string& path, const json& body, int status = 200);
  // The "data:" lines of a stream, without the last "[DONE]".
  static std::vector<json> events(const std::string& stream);
  // Until no request runs.
  bool wait_idle();
  // Until the engine is done with all that it was given; an answer may be unread still.
  void wait_for_engine();

 private:
  std::unique_ptr<Service> service_;
  http::Router router_;
};

}  // namespace foretoken::test
