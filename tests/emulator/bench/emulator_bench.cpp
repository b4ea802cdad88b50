// How fast the emulator is: switches, accesses, collectives, compilation.
#include <benchmark/benchmark.h>

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "generator/emit/emit.h"
#include "generator/generate.h"
#include "generator/spec/reader.h"
#include "runtime/emulator/compiler.h"
#include "runtime/emulator/emulator_backend.h"

namespace afdep {
namespace {

struct Args {
  std::uint32_t* memory;
  std::uint32_t rounds;
};

std::string text(const std::string& symbol, const std::string& body) {
  return fmt::format(R"(#include "afdep/bf16.cuh"
#include "afdep/packet.cuh"
struct Args {{ uint32_t* memory; uint32_t rounds; }};
extern "C" __global__ void __launch_bounds__(256, 1) {}(const __grid_constant__ Args args) {{
  uint32_t* const mine = args.memory + (afdep::block_index() * 256 + afdep::thread_index()) * 4;
  for (uint32_t i = 0; i < args.rounds; ++i) {{
    {}
  }}
}}
)",
                     symbol, body);
}

// Runs `grid` blocks of 256 threads that do `body` 100 times each. Seeds take every grain of
// interleaving, so the rates are means over seeds.
void run(benchmark::State& state, const std::string& symbol, const std::string& body,
         std::uint64_t operations_per_round) {
  constexpr std::uint32_t kRounds = 100;
  const int grid = static_cast<int>(state.range(0));
  auto backend = std::move(EmulatorBackend::create({}).value());
  const Stream stream = backend->create_stream().value();
  const std::string source = text(symbol, body);
  const LoadedKernel* kernel = backend->load({symbol, symbol + ".cu", source, {}}).value();
  const Args args{static_cast<std::uint32_t*>(
                      backend->allocate(static_cast<std::size_t>(grid) * 256 * 16).value()),
                  kRounds};
  std::uint64_t seed = 0;
  std::uint64_t switches = 0;
  std::uint64_t operations = 0;
  for (auto _ : state) {
    backend->set_seed(++seed);
    if (!backend->launch({kernel, grid, 256, 0, &args, sizeof args, false, 0}, stream).ok() ||
        !backend->run().ok()) {
      state.SkipWithError(backend->last_report().c_str());
      break;
    }
    switches += backend->counts().switches;
    operations += static_cast<std::uint64_t>(grid) * 256 * kRounds * operations_per_round;
  }
  state.counters["switches"] =
      benchmark::Counter(static_cast<double>(switches), benchmark::Counter::kIsRate);
  state.counters["lane_operations"] =
      benchmark::Counter(static_cast<double>(operations), benchmark::Counter::kIsRate);
}

// Each poll that misses for the first time goes to the scheduler and back: the bare cost of a
// switch.
void switch_fibers(benchmark::State& state) {
  run(state, "bench_switch", "afdep::poll_missed(mine, {1, 0, i}, 0, i);", 1);
}
BENCHMARK(switch_fibers)->Arg(1)->Arg(16);

void load_and_store(benchmark::State& state) {
  run(state, "bench_access", "afdep::store_word(mine, afdep::load_word(mine) + i);", 2);
}
BENCHMARK(load_and_store)->Arg(1)->Arg(16);

void packets(benchmark::State& state) {
  run(state, "bench_packets", "afdep::store_packet(mine, afdep::load_packet(mine));", 2);
}
BENCHMARK(packets)->Arg(1)->Arg(16);

void ballot(benchmark::State& state) {
  run(state, "bench_ballot", "if (afdep::ballot(i == 3) == 1) afdep::store_word(mine, i);", 1);
}
BENCHMARK(ballot)->Arg(1)->Arg(16);

void block_barrier(benchmark::State& state) {
  run(state, "bench_barrier", "if (mine != nullptr) afdep::sync_block();", 1);
}
BENCHMARK(block_barrier)->Arg(1)->Arg(16);

// Clang, the optimizer and the JIT, for a text never seen before.
void compile(benchmark::State& state) {
  int number = 0;
  for (auto _ : state) {
    const std::string source =
        text("bench_compile", "afdep::store_packet(mine, afdep::load_packet(mine));") +
        fmt::format("// {}\n", ++number);
    benchmark::DoNotOptimize(emulator::compile("bench.cu", "bench_compile", source).ok());
  }
}
BENCHMARK(compile)->Unit(benchmark::kMillisecond);

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

// Every kernel of a shipped spec as emitted, each for the first time: CPU time of one on average
// and of the slowest. Runs in the repository's root.
void compile_emitted(benchmark::State& state, const char* spec_file) {
  const auto spec = spec::load(spec_file);
  if (!spec.ok()) {
    state.SkipWithError(to_string(spec.diagnostics()).c_str());
    return;
  }
  const auto plan = plan_exchange(*spec);
  double worst = 0;
  double total = 0;
  int kernels = 0;
  static int pass = 0;  // of the process, which keeps what it compiled
  for (auto _ : state) {
    ++pass;
    for (const KernelSource& source : emit::emit(*plan)) {
      const std::string text = source.text + fmt::format("// {}\n", pass);
      const double start = cpu_seconds();
      if (!emulator::compile(source.file_name, source.symbol, text).ok()) {
        state.SkipWithError(source.file_name.c_str());
        return;
      }
      const double taken = cpu_seconds() - start;
      worst = std::max(worst, taken);
      total += taken;
      ++kernels;
    }
  }
  state.counters["ms_each"] = total / kernels * 1e3;
  state.counters["ms_worst"] = worst * 1e3;
}
BENCHMARK_CAPTURE(compile_emitted, 2a2f, "specs/qwen3-30b-a3b-2a2f.yaml")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(compile_emitted, 48a16f, "specs/deepseek-v3-48a16f.yaml")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(compile_emitted, mixtral, "specs/mixtral-8x7b-2a2f.yaml")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(compile_emitted, 20a4f, "specs/qwen3-235b-20a4f.yaml")
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace afdep
