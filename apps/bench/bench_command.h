#pragma once
#include <foretoken/request.h>

#include <CLI/CLI.hpp>
#include <functional>

namespace foretoken {

// Each adds its benchmark to the command "bench".
void add_bench_latency(CLI::App& bench, std::function<int()>* run);
void add_bench_throughput(CLI::App& bench, std::function<int()>* run);
void add_bench_serve(CLI::App& bench, std::function<int()>* run);
void add_bench_startup(CLI::App& bench, std::function<int()>* run);
void add_bench_pairs(CLI::App& bench, std::function<int()>* run);
void add_bench_decode(CLI::App& bench, std::function<int()>* run);
void add_bench_forward(CLI::App& bench, std::function<int()>* run);
void add_bench_kernels(CLI::App& bench, std::function<int()>* run);
void add_bench_grammar(CLI::App& bench, std::function<int()>* run);
void add_bench_host(CLI::App& bench, std::function<int()>* run);

}  // namespace foretoken
