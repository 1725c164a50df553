#pragma once
#include <vector>

namespace foretoken {

// Upper bounds of histograms, ascending. vLLM's bounds are among them, so that queries over its
// buckets go on working; finer ones stand below, where a fast engine would fall into the first.

std::vector<double> first_token_buckets();    // seconds
std::vector<double> token_latency_buckets();  // seconds
std::vector<double> request_buckets();        // seconds
// 1, 2, 5, 10, 20, 50, ... up to and with `most`.
std::vector<double> count_buckets(int most);

}  // namespace foretoken
