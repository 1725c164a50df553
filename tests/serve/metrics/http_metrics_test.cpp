#include "serve/metrics/http_metrics.h"

#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <sstream>

namespace foretoken {
namespace {

std::string page_of(const HttpMetrics& metrics) {
  std::ostringstream page;
  prometheus::TextSerializer().Serialize(page, metrics.collect());
  return page.str();
}

http::AccessRecord answered(const char* method, const char* pattern, int status) {
  http::AccessRecord record;
  record.method = method;
  record.pattern = pattern;
  record.status = status;
  record.duration = std::chrono::milliseconds(200);
  return record;
}

TEST(HttpMetrics, AnswersByEndpointMethodAndClass) {
  HttpMetrics metrics;
  metrics.count(answered("POST", "/v1/completions", 200));
  metrics.count(answered("POST", "/v1/completions", 201));
  metrics.count(answered("POST", "/v1/completions", 404));
  metrics.count(answered("BREW", "", 405));
  const std::string page = page_of(metrics);
  const std::string post = "{handler=\"/v1/completions\",method=\"POST\"";
  for (const std::string& line :
       {"http_requests_total" + post + ",status=\"2xx\"} 2\n",
        "http_requests_total" + post + ",status=\"4xx\"} 1\n",
        std::string("http_requests_total{handler=\"none\",method=\"other\",status=\"4xx\"} 1\n"),
        "http_request_duration_seconds_count" + post + "} 3\n",
        "http_request_duration_seconds_bucket" + post + ",le=\"0.1\"} 0\n",
        "http_request_duration_seconds_bucket" + post + ",le=\"0.5\"} 3\n"}) {
    EXPECT_NE(page.find(line), std::string::npos) << line << page;
  }
}

TEST(HttpMetrics, ThoseWhoWatchAndWhatIsNoHttpAreLeftOut) {
  HttpMetrics metrics;
  metrics.count(answered("GET", "/metrics", 200));
  metrics.count(answered("GET", "/health", 200));
  metrics.count(answered("", "", 400));
  EXPECT_EQ(page_of(metrics).find("http_requests_total{"), std::string::npos);
}

}  // namespace
}  // namespace foretoken
