#include "base/json_log.h"

#include <gtest/gtest.h>

#include <sstream>

#include "base/log.h"

namespace foretoken {
namespace {

template <class Log>
std::string stderr_of(const Log& log) {
  testing::internal::CaptureStderr();
  log();
  spdlog::default_logger()->flush();
  return testing::internal::GetCapturedStderr();
}

TEST(JsonLog, EventsAsTextByDefault) {
  const std::string text = stderr_of([] {
    init_logging("info");
    log_event("request", {{"status", 200}, {"path", "/v1/models"}});
  });
  EXPECT_NE(text.find("request status=200 path=/v1/models\n"), std::string::npos) << text;
  init_logging("info");
}

TEST(JsonLog, EveryLineIsAnObject) {
  const std::string text = stderr_of([] {
    init_logging("info");
    use_json_logs();
    FT_LOG(info, "a \"quoted\" line\nwith a break and \xff");
    FT_LOG(debug, "nobody wants to know");
    log_event("request", {{"status", 200}, {"path", "/"}});
  });
  init_logging("info");
  std::istringstream lines(text);
  std::vector<nlohmann::json> objects;
  for (std::string line; std::getline(lines, line);) objects.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(objects.size(), 2u) << text;
  EXPECT_EQ(objects[0]["level"], "info");
  EXPECT_EQ(objects[0]["message"].get<std::string>().rfind("a \"quoted\" line\nwith a break", 0),
            0u);
  EXPECT_EQ(objects[0]["time"].get<std::string>().size(),
            std::string("2026-01-01T00:00:00.000Z").size());
  EXPECT_EQ(objects[1]["status"], 200);
  EXPECT_EQ(objects[1]["path"], "/");
}

}  // namespace
}  // namespace foretoken
