#include "tests/mutation/judge.h"

#include <fmt/format.h>

#include <array>

#include "generator/verify/verify.h"
#include "tests/mutation/apply.h"
#include "tests/mutation/barrier_program.h"

namespace afdep::mutation {
namespace {

struct VictimSpec {
  Victim victim;
  const char* name;
  const char* text;
};

constexpr std::array kSpecs{VictimSpec{kTwoByTwo, "2A2F", R"(schema_version: 1
name: two-by-two
model: {hidden_size: 64, num_experts: 8, top_k: 3}
topology: {ratio: "2A2F"}
capacity: {tokens_per_rank: 48, buckets: [4, 48]}
receive: {expert_alignment: 4, padding: zero}
kernel: {num_sms: 4, protocol: {4: flag_in_data, 48: chunked}}
)"},
                            VictimSpec{kView, "2A1F", R"(schema_version: 1
name: view
model: {hidden_size: 64, num_experts: 4, top_k: 2}
topology: {ratio: "2A1F"}
capacity: {tokens_per_rank: 48, buckets: [4, 48]}
kernel: {num_sms: 4, protocol: {4: flag_in_data, 48: chunked}}
)"},
                            VictimSpec{kSlots, "1A4F", R"(schema_version: 1
name: slots
model: {hidden_size: 64, num_experts: 8, top_k: 2}
topology: {ratio: "1A4F"}
capacity: {tokens_per_rank: 48, buckets: [4, 48]}
kernel: {num_sms: 4, protocol: {4: flag_in_data, 48: chunked}}
)"},
                            VictimSpec{kWide, "2A2F wide", R"(schema_version: 1
name: wide
model: {hidden_size: 2048, num_experts: 8, top_k: 2}
topology: {ratio: "2A2F"}
capacity: {tokens_per_rank: 4, buckets: [4]}
kernel: {num_sms: 4, protocol: flag_in_data}
)"},
                            VictimSpec{kEarly, "2A2F early", R"(schema_version: 1
name: early
model: {hidden_size: 1280, num_experts: 8, top_k: 3}
topology: {ratio: "2A2F"}
capacity: {tokens_per_rank: 2, buckets: [2]}
kernel: {num_sms: 10, protocol: flag_in_data}
)"},
                            VictimSpec{kManySlots, "1A6F", R"(schema_version: 1
name: many-slots
model: {hidden_size: 64, num_experts: 12, top_k: 5}
topology: {ratio: "1A6F"}
capacity: {tokens_per_rank: 4, buckets: [4]}
kernel: {num_sms: 4, protocol: flag_in_data}
)"},
                            VictimSpec{kBulk, "2A2F bulk", R"(schema_version: 1
name: bulk
model: {hidden_size: 64, num_experts: 8, top_k: 3}
topology: {ratio: "2A2F"}
capacity: {tokens_per_rank: 64, buckets: [64]}
kernel: {num_sms: 4, protocol: bulk}
)"},
                            VictimSpec{kReverted, "2A2F reverted", R"(schema_version: 1
name: reverted
model: {hidden_size: 64, num_experts: 8, top_k: 3}
topology: {ratio: "2A2F"}
capacity: {tokens_per_rank: 48, buckets: [4, 48]}
kernel: {num_sms: 4, protocol: {4: flag_in_data, 48: chunked}}
ablation: {entry_barrier: true, exit_barrier: true, dummy_experts: true, union_buffers: true, separate_epilogues: true}
)"}};

constexpr double kExhaustiveSeconds = 20;  // a protocol
constexpr int kWholeSeeds = 3;
constexpr int kBarrierSeeds = 10;  // of the barriers alone, for each of the others

// The first line, at a length that fits a table.
std::string brief(const std::string& message) {
  std::string line = message.substr(0, message.find('\n'));
  constexpr std::size_t kMost = 150;
  if (line.size() > kMost) line = line.substr(0, kMost - 3) + "...";
  return line;
}

// Small enough for every schedule.
constexpr VictimSpec kTiny{kTwoByTwo, "1A1F, every schedule", R"(schema_version: 1
name: tiny
model: {hidden_size: 64, num_experts: 4, top_k: 2}
topology: {ratio: "1A1F"}
capacity: {tokens_per_rank: 48, buckets: [1, 48]}
kernel: {num_sms: 1, protocol: {1: flag_in_data, 48: chunked}}
)"};

// False if the verdict is in.
bool try_victim(const Mutant& mutant, const VictimSpec& spec, verify::VerifyOptions options,
                Verdict& verdict) {
  int changes = 0;
  options.shrink = false;
  options.emit = [&](const plan::ExchangePlan& plan) -> Result<bundle::Bundle> {
    Result<Applied> applied = apply(mutant, plan);
    if (!applied.ok()) return applied.failure();
    changes += applied->changes;
    emulator::replace_device_headers(std::move(applied->headers));
    return std::move(applied->bundle);
  };
  const Result<verify::VerifyReport> report =
      verify::verify(spec.text, std::string(spec.name), options);
  emulator::replace_device_headers({});
  verdict.applies |= changes > 0;
  if (!report.ok()) {
    verdict.broken = true;
    verdict.by = brief(to_string(report.diagnostics()));
    return false;
  }
  if (report->failures.empty()) return true;
  verdict.killed = true;
  verdict.by = fmt::format("{}: {}", spec.name, brief(report->failures.front().message));
  return false;
}

// Barriers alone; false if the verdict is in.
bool try_barrier_program(const Mutant& mutant, int seeds, Verdict& verdict) {
  std::vector<emulator::HeaderText> headers = changed_headers(mutant);
  if (headers.empty()) return true;
  emulator::replace_device_headers(std::move(headers));
  const std::string wrong = run_barrier_program(1, seeds * kBarrierSeeds);
  emulator::replace_device_headers({});
  if (wrong.empty()) return true;
  verdict.killed = true;
  verdict.by = fmt::format("barriers alone: {}", brief(wrong));
  return false;
}

}  // namespace

Verdict judge(const Mutant& mutant, int seeds) {
  Verdict verdict;
  verify::VerifyOptions options;
  // The first seed of a run tries every kind of exchange, and the faults: a few have a run of their
  // own, the others share one.
  for (const VictimSpec& spec : kSpecs) {
    if ((mutant.victims & spec.victim) == 0) continue;
    for (int seed = 1; seed <= seeds;) {
      options.first_seed = static_cast<std::uint64_t>(seed);
      options.seeds = seed <= kWholeSeeds ? 1 : seeds - seed + 1;
      if (!try_victim(mutant, spec, options, verdict)) return verdict;
      seed += options.seeds;
    }
  }
  if ((mutant.victims & kReverted) != 0 && !try_barrier_program(mutant, seeds, verdict)) {
    return verdict;
  }
  options.first_seed = 1;
  if ((mutant.victims & kTiny.victim) == 0) return verdict;
  options.explore = verify::Explore::kExhaustive;
  options.exhaustive_seconds = kExhaustiveSeconds;
  try_victim(mutant, kTiny, options, verdict);
  return verdict;
}

}  // namespace afdep::mutation
