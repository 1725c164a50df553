#include "bench/arrivals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "bench/statistics.h"

namespace foretoken::bench {
namespace {

constexpr size_t kMany = 20'000;

ArrivalOptions with_rate(double rate, double burstiness = 1) {
  ArrivalOptions options;
  options.request_rate = rate;
  options.burstiness = burstiness;
  return options;
}

std::vector<double> gaps_of(const std::vector<double>& times) {
  std::vector<double> gaps = {times[0]};
  for (size_t i = 1; i < times.size(); ++i) gaps.push_back(times[i] - times[i - 1]);
  return gaps;
}

TEST(Arrivals, WithoutARateAllComeAtOnce) {
  EXPECT_EQ(arrival_times(ArrivalOptions(), 5), std::vector<double>(5, 0.0));
}

TEST(Arrivals, TheLastComesWhenTheRateSays) {
  for (const double burstiness : {0.3, 1.0, 7.0}) {
    const std::vector<double> times = arrival_times(with_rate(4, burstiness), 100);
    EXPECT_DOUBLE_EQ(times.back(), 25);
    EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
    EXPECT_GT(times.front(), 0);
  }
}

// The gaps of a gamma process have the standard deviation mean / sqrt(shape); those of a Poisson
// process are exponential.
TEST(Arrivals, GapsAreGammaDistributed) {
  for (const double burstiness : {0.25, 1.0, 4.0}) {
    const Distribution gaps =
        describe(gaps_of(arrival_times(with_rate(10, burstiness), kMany)), {});
    EXPECT_NEAR(gaps.mean, 0.1, 1e-9);
    EXPECT_NEAR(gaps.std * std::sqrt(burstiness), 0.1, 0.006) << burstiness;
  }
  const std::vector<double> poisson = gaps_of(arrival_times(with_rate(10), kMany));
  const double median = describe(poisson, {}).median;
  EXPECT_NEAR(median, 0.1 * std::log(2), 0.003);
  const auto longer =
      std::count_if(poisson.begin(), poisson.end(), [](double g) { return g > 0.3; });
  EXPECT_NEAR(static_cast<double>(longer) / kMany, std::exp(-3), 0.006);
}

TEST(Arrivals, EvenAtInfiniteBurstiness) {
  for (const double gap : gaps_of(arrival_times(with_rate(10, INFINITY), 50))) {
    EXPECT_NEAR(gap, 0.1, 1e-9);
  }
}

TEST(Arrivals, ASeedGivesTheSameTimesAndAnotherDoesNot) {
  ArrivalOptions options = with_rate(5);
  const std::vector<double> times = arrival_times(options, 50);
  EXPECT_EQ(arrival_times(options, 50), times);
  options.seed = 1;
  EXPECT_NE(arrival_times(options, 50), times);
}

TEST(Arrivals, RampsGoFromStartToEnd) {
  ArrivalOptions options;
  options.start_rps = 2;
  options.end_rps = 32;
  options.ramp_up = RampUp::kLinear;
  EXPECT_DOUBLE_EQ(rate_at(options, 0, 101), 2);
  EXPECT_DOUBLE_EQ(rate_at(options, 50, 101), 17);
  EXPECT_DOUBLE_EQ(rate_at(options, 100, 101), 32);
  options.ramp_up = RampUp::kExponential;
  EXPECT_DOUBLE_EQ(rate_at(options, 50, 101), 8);
  EXPECT_DOUBLE_EQ(rate_at(options, 100, 101), 32);
  EXPECT_DOUBLE_EQ(rate_at(options, 0, 1), 2);
  const std::vector<double> times = arrival_times(options, kMany);
  const double first = times[kMany / 10];
  const double last = times.back() - times[kMany - 1 - kMany / 10];
  EXPECT_GT(first, 8 * last) << "the last tenth comes much faster than the first";
}

TEST(Arrivals, WrongFlagsAreNamed) {
  const auto message = [](const ArrivalOptions& options) {
    return check_arrivals(options).message();
  };
  EXPECT_EQ(message(with_rate(3)), "");
  EXPECT_NE(message(with_rate(0)).find("--request-rate"), std::string::npos);
  EXPECT_NE(message(with_rate(NAN)).find("--request-rate"), std::string::npos);
  EXPECT_NE(message(with_rate(1, 0)).find("--burstiness"), std::string::npos);
  ArrivalOptions ramp;
  ramp.start_rps = 1;
  ramp.end_rps = 5;
  EXPECT_NE(message(ramp).find("--ramp-up-strategy"), std::string::npos);
  ramp.ramp_up = RampUp::kLinear;
  EXPECT_EQ(message(ramp), "");
  ramp.request_rate = 3;
  EXPECT_NE(message(ramp).find("leave --request-rate out"), std::string::npos);
  ramp.request_rate = INFINITY;
  ramp.start_rps = 6;
  EXPECT_NE(message(ramp).find("--ramp-up-end-rps"), std::string::npos);
  ramp.start_rps = 0;
  EXPECT_NE(message(ramp).find("--ramp-up-start-rps"), std::string::npos);
}

}  // namespace
}  // namespace foretoken::bench
