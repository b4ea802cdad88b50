#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "runtime/emulator/emulator_backend.h"
#include "tests/litmus/litmus.h"

namespace afdep::litmus {
namespace {

constexpr std::uint32_t kUnset = 0xffffffffu;
constexpr int kMaxRegisters = 8;

struct Args {
  std::uint8_t* memory;
  std::uint32_t* out;
  std::uint32_t who;
};

std::string kernel_text(const Litmus& litmus) {
  std::string text = R"(#include "afdep/abi.h"
#include "afdep/bulk.cuh"
#include "afdep/memory.cuh"
#include "afdep/thread.cuh"
using namespace afdep;
struct Args { uint8_t* memory; uint32_t* out; uint32_t who; };
struct Shared { alignas(128) uint8_t stage[64]; BulkBarrier loaded; uint32_t word[32]; };
extern "C" __global__ void __launch_bounds__(32, 1) litmus(const __grid_constant__ Args args) {
  [[maybe_unused]] uint32_t* const X = reinterpret_cast<uint32_t*>(args.memory);
  [[maybe_unused]] uint32_t* const Y = reinterpret_cast<uint32_t*>(args.memory + 64);
  [[maybe_unused]] uint32_t* const Z = reinterpret_cast<uint32_t*>(args.memory + 128);
  [[maybe_unused]] const int lane = lane_index();
  [[maybe_unused]] Shared& shared = shared_memory<Shared>();
  [[maybe_unused]] const auto set = [&](int i, uint32_t value) { store_word(args.out + i, value); };
  [[maybe_unused]] const auto packet = [](uint32_t value) {
    return Packet{{value, value, value}, value};
  };
  [[maybe_unused]] const auto until = [](const void* at, uint32_t value) {
    for (Packet p = load_packet(at); p.generation != value; p = load_packet(at)) {
      poll_missed(at, {1, 0, 0}, p.generation, value);
    }
  };
)";
  for (std::size_t i = 0; i < litmus.threads.size(); ++i) {
    const std::string& body = litmus.threads[i];
    // A text that speaks of lanes is run by all of them.
    const bool all = body.find("lane") != std::string::npos;
    text += fmt::format("  if (args.who == {}{}) {{\n    {}\n  }}\n", i, all ? "" : " && lane == 0",
                        body);
  }
  return text + "}\n";
}

std::string report_of(const std::string& report) {
  static constexpr std::array kNames{
      "missing proxy fence",
      "inbox slot overwritten before its reader is proven done",
      "data race: scope too narrow",
      "data race",
      "bulk barrier used before its initialisation is known",
      "the thread ends while",
      "deadlock",
  };
  for (const char* const name : kNames) {
    if (report.find(name) != std::string::npos) return name;
  }
  return report;
}

int rank_of(const Litmus& litmus, std::size_t thread) {
  if (litmus.one_stream) return 0;
  return litmus.ranks.empty() ? static_cast<int>(thread) : litmus.ranks[thread];
}

}  // namespace

std::set<std::string> outcomes(const Litmus& litmus) {
  EmulatorOptions options;
  options.schedule.stop_on_stall = true;
  auto backend = std::move(EmulatorBackend::create(options).value());
  const std::string source = kernel_text(litmus);
  auto loaded = backend->load({"litmus", litmus.name + ".cu", source, {}});
  if (!loaded.ok()) return {to_string(loaded.diagnostics())};
  std::vector<Stream> streams;
  for (std::size_t i = 0; i < litmus.threads.size(); ++i) {
    streams.push_back(backend->create_stream().value());
  }
  auto* const memory = static_cast<std::uint8_t*>(backend->allocate(4096).value());
  auto* const out = static_cast<std::uint32_t*>(backend->allocate(4096).value());
  std::set<std::string> found;
  for (std::uint64_t seed = 1; seed <= litmus.seeds; ++seed) {
    backend->set_seed(seed);
    EXPECT_TRUE(backend->fill(memory, 0, 4096).ok());
    EXPECT_TRUE(backend->fill(out, 0xff, 4096).ok());
    EXPECT_TRUE(backend->copy_to_device(memory + 64, &litmus.first_y, sizeof litmus.first_y).ok());
    for (std::size_t i = 0; i < litmus.threads.size(); ++i) {
      const Args args{memory, out, static_cast<std::uint32_t>(i)};
      const bool later = litmus.one_stream && i > 0;
      const auto launched =
          backend->launch({*loaded, 1, 32, 512, &args, sizeof args, later, rank_of(litmus, i)},
                          streams[litmus.one_stream ? 0 : i]);
      EXPECT_TRUE(launched.ok());
    }
    if (!backend->run().ok()) {
      found.insert(report_of(backend->last_report()));
      continue;
    }
    std::string outcome;
    for (int i = 0; i < litmus.registers; ++i) {
      const std::uint32_t value = out[i];
      outcome += value == kUnset ? "-" : std::to_string(value);
    }
    found.insert(outcome);
  }
  static_assert(kMaxRegisters * sizeof(std::uint32_t) <= 4096);
  return found;
}

}  // namespace afdep::litmus
