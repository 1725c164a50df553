#include "bench/timeline_plot.h"

#include <gtest/gtest.h>

#include "bench/xml_check.h"

namespace foretoken::bench {
namespace {

int count(const std::string& text, const std::string& part) {
  int number = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++number;
  return number;
}

RequestRecord timeline_record(double start, std::vector<double> itls) {
  RequestRecord record;
  record.success = true;
  record.start_time = start;
  record.ttft = 0.5;
  record.itls = std::move(itls);
  record.latency = 0.5;
  for (const double gap : record.itls) record.latency += gap;
  return record;
}

TEST(TimelinePlot, ColoursFollowTheThresholds) {
  const ItlThresholds thresholds = {100, 300};
  const auto plot = [&](std::vector<double> itls) {
    return timeline_svg({timeline_record(0, std::move(itls))}, "t", thresholds);
  };
  const std::string none = plot({});
  const std::string all = plot({0.1, 0.3, 0.31});
  EXPECT_EQ(xml_problem(all), "");
  for (const char* colour : {"#54a24b", "#f2a33a", "#d62728"}) {
    EXPECT_EQ(count(all, colour), count(none, colour) + 1) << colour;
  }
}

TEST(TimelinePlot, EqualNeighboursAreOneBar) {
  const std::string one = timeline_svg({timeline_record(0, {0.1})}, "t", {100, 300});
  const std::string many =
      timeline_svg({timeline_record(0, std::vector<double>(50, 0.002))}, "t", {100, 300});
  EXPECT_EQ(count(one, "<rect"), count(many, "<rect"));
}

TEST(TimelinePlot, FailuresAndWaitingAreDrawn) {
  RequestRecord failed = timeline_record(3, {0.1});
  failed.success = false;
  failed.queue_time = 1;
  const std::string plain = timeline_svg({timeline_record(3, {0.1})}, "t", {25, 50});
  const std::string svg = timeline_svg({failed}, "t", {25, 50});
  EXPECT_EQ(count(svg, "stroke=\"#d62728\""), count(plain, "stroke=\"#d62728\"") + 2);
  EXPECT_EQ(count(svg, "#d9d9d9"), count(plain, "#d9d9d9") + 1);
}

TEST(TimelinePlot, ManyRequestsStayASmallPicture) {
  std::vector<RequestRecord> records;
  for (int i = 0; i < 2000; ++i)
    records.push_back(timeline_record(i * 0.01, std::vector<double>(200, 0.02)));
  const std::string svg = timeline_svg(records, "m", {25, 50});
  EXPECT_EQ(xml_problem(svg), "");
  EXPECT_LT(svg.size(), 2u << 20);
}

TEST(TimelinePlot, NothingIsStillAPicture) {
  EXPECT_EQ(xml_problem(timeline_svg({}, "empty & <void>", {25, 50})), "");
}

TEST(TimelinePlot, Thresholds) {
  EXPECT_EQ(parse_itl_thresholds("25,50").value(), (ItlThresholds{25, 50}));
  EXPECT_EQ(parse_itl_thresholds(" 0.5 , 1 ").value(), (ItlThresholds{0.5, 1}));
  for (const char* text : {"", "25", "50,25", "0,5", "a,b", "1,2,3", "25,50ms"}) {
    EXPECT_FALSE(parse_itl_thresholds(text).ok()) << text;
  }
}

}  // namespace
}  // namespace foretoken::bench
