#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "generator/plan/check.h"
#include "generator/plan/check_rules.h"

namespace afdep::plan {
namespace {

constexpr int kPacketBytes = 16;
constexpr int kPacketPayloadBytes = 12;
constexpr int kWordBytes = 4;
// Of one top-k choice: an FP32 weight and an id of at least 16 bits.
constexpr int kChoiceBytes = 6;

std::string_view verb(const Step& step) {
  return step.kind == StepKind::kAwait ? "awaits" : "publishes";
}

// The rules of one bucket.
class BucketCheck {
 public:
  BucketCheck(const ExchangePlan& plan, const BucketPlan& bucket, CheckReport& report)
      : plan_(plan), bucket_(bucket), report_(report) {}

  void run() {
    check_signals();
    check_pairing();
    check_done();
    check_order();
    check_path();
    check_figures();
  }

 private:
  void refuse(std::string_view rule, const std::string& what) {
    report_.add(rule, fmt::format("bucket {}: {}", bucket_.bucket, what));
  }

  std::vector<const Kernel*> kernels_with(StepKind kind, const std::string& signal) const {
    std::vector<const Kernel*> found;
    for (const Kernel& kernel : bucket_.kernels) {
      const bool has = std::ranges::any_of(kernel.steps, [&](const Step& step) {
        return step.kind == kind && step.signal == signal;
      });
      if (has) found.push_back(&kernel);
    }
    return found;
  }

  void check_signals();
  void check_regions(const Signal& signal);
  void check_among_all(const Signal& signal);
  void check_halves(const Signal& signal, const Region& region);
  void check_peers(const Signal& signal, const Region& region);
  void check_items(const Signal& signal, const Region& data);
  void check_pairing();
  void check_pair(const Signal& signal);
  void check_meeting(const Signal& signal);
  void check_done();
  void check_order();
  void check_path();
  void check_figures();

  const ExchangePlan& plan_;
  const BucketPlan& bucket_;
  CheckReport& report_;
};

void BucketCheck::check_signals() {
  std::set<std::string> names;
  std::map<std::string, std::string> flags;  // region -> signal
  for (const Signal& signal : bucket_.signals) {
    if (signal.name.empty() || !names.insert(signal.name).second) {
      refuse("signal", fmt::format("the name \"{}\" is empty or given twice", signal.name));
    }
    if (signal.among_all()) {
      check_among_all(signal);
      continue;
    }
    if (signal.from == signal.to) {
      refuse("signal", fmt::format("\"{}\" goes from {} to {}: a signal crosses roles", signal.name,
                                   to_string(signal.from), to_string(signal.to)));
    }
    const auto [other, added] =
        flags.emplace(fmt::format("{} {}", to_string(signal.to), signal.flag_region), signal.name);
    if (!added) {
      refuse("signal", fmt::format("\"{}\" and \"{}\" are both awaited in {}", other->second,
                                   signal.name, signal.flag_region));
    }
    check_regions(signal);
  }
}

// Ranks of both roles address each other's words by one offset.
void BucketCheck::check_among_all(const Signal& signal) {
  const Region* const source = find_region(plan_, Role::kAttention, signal.flag_region);
  const Region* const worker = find_region(plan_, Role::kFfn, signal.flag_region);
  if (source == nullptr || worker == nullptr) {
    refuse("meeting",
           fmt::format("\"{}\" is awaited in \"{}\", which the {} window lacks", signal.name,
                       signal.flag_region, source == nullptr ? "attention" : "ffn"));
    return;
  }
  if (*source != *worker) {
    refuse("meeting", fmt::format("\"{}\" is at {} of the attention window and at {} of the ffn "
                                  "window, or of another shape there",
                                  signal.name, source->offset, worker->offset));
  }
  const int halves = signal.kind == SignalKind::kCounts ? 2 : 1;
  if (source->peers != plan_.ranks() || source->halves != halves ||
      source->item_bytes != kPacketBytes) {
    refuse("meeting", fmt::format("\"{}\" needs {} halves of {} blocks of {}-byte items, \"{}\" "
                                  "has {} of {} of {}",
                                  signal.name, halves, plan_.ranks(), kPacketBytes, source->name,
                                  source->halves, source->peers, source->item_bytes));
  }
}

void BucketCheck::check_regions(const Signal& signal) {
  const Region* flag = find_region(plan_, signal.to, signal.flag_region);
  if (flag == nullptr) {
    refuse("signal", fmt::format("\"{}\" is awaited in \"{}\", which the {} window lacks",
                                 signal.name, signal.flag_region, to_string(signal.to)));
    return;
  }
  check_peers(signal, *flag);
  if (signal.kind == SignalKind::kDoneWord) {
    if (!signal.data_region.empty()) {
      refuse("signal", fmt::format("done word \"{}\" covers data in \"{}\"", signal.name,
                                   signal.data_region));
    }
    return;
  }
  const Region* data = find_region(plan_, signal.to, signal.data_region);
  if (data == nullptr) {
    refuse("signal", fmt::format("\"{}\" covers \"{}\", which the {} window lacks", signal.name,
                                 signal.data_region, to_string(signal.to)));
    return;
  }
  const bool in_data = signal.kind == SignalKind::kPacket;
  if (in_data != (flag == data)) {
    refuse("signal", fmt::format("{} \"{}\" is awaited in \"{}\" and covers \"{}\"",
                                 to_string(signal.kind), signal.name, flag->name, data->name));
  }
  if (signal.generation_lag != 0) {
    refuse("signal", fmt::format("\"{}\" lags {} generations: data is of its own generation",
                                 signal.name, signal.generation_lag));
  }
  if (flag != data) check_peers(signal, *data);
  check_items(signal, *data);
  check_halves(signal, *flag);
  if (flag != data) check_halves(signal, *data);
}

void BucketCheck::check_halves(const Signal& signal, const Region& region) {
  if (region.halves == 2 || region.name == kViewRegion) return;
  refuse("halves",
         fmt::format("\"{}\" is written into \"{}\", which has one half: generation g + 1 "
                     "could overwrite what is still read for g",
                     signal.name, region.name));
}

void BucketCheck::check_peers(const Signal& signal, const Region& region) {
  const int writers = signal.from == Role::kAttention ? plan_.attention_ranks : plan_.ffn_ranks;
  const bool is_word = signal.kind != SignalKind::kPacket && region.name == signal.flag_region;
  if (is_word && region.item_bytes != kWordBytes) {
    refuse("capacity",
           fmt::format("\"{}\" is awaited in \"{}\", whose items are {} bytes, not a {}-byte word",
                       signal.name, region.name, region.item_bytes, kWordBytes));
  }
  if (signal.kind == SignalKind::kDoneWord) {
    if (region.peers * region.items < writers) {
      refuse("capacity", fmt::format("\"{}\" needs {} words in \"{}\", which has {}", signal.name,
                                     writers, region.name, region.peers * region.items));
    }
    return;
  }
  // A token has at most top_k replies, so an attention rank may keep their rows by reply slot.
  const bool by_slot = signal.from == Role::kFfn && !is_word;
  const int needed = by_slot ? std::min(writers, plan_.top_k) : writers;
  if (region.peers < needed) {
    refuse("capacity", fmt::format("\"{}\" needs {} peers of \"{}\", which has {}", signal.name,
                                   needed, region.name, region.peers));
  }
}

void BucketCheck::check_items(const Signal& signal, const Region& data) {
  // Counts come by slice, not by token; their size follows from the slices, which only the kernels
  // know.
  if (signal.name == "counts") return;
  // The table is top_k choices a token, and so are the choices of a bulk bucket; else rows.
  std::int64_t token_bytes = signal.name == "table" || signal.name == "choices"
                                 ? static_cast<std::int64_t>(plan_.top_k) * kChoiceBytes
                                 : plan_.row_bytes;
  if (signal.kind == SignalKind::kPacket) {
    token_bytes = (token_bytes + kPacketPayloadBytes - 1) / kPacketPayloadBytes * kPacketBytes;
    if (data.item_bytes % kPacketBytes != 0) {
      refuse("capacity", fmt::format("\"{}\" sends packets to \"{}\", whose items are {} bytes",
                                     signal.name, data.name, data.item_bytes));
    }
  }
  const std::int64_t needed = bucket_.bucket * token_bytes;
  const std::int64_t held = data.items * data.item_bytes;
  if (held < needed) {
    refuse("capacity",
           fmt::format("\"{}\" needs {} bytes a peer for {} tokens in \"{}\", which has {}",
                       signal.name, needed, bucket_.bucket, data.name, held));
  }
}

void BucketCheck::check_pairing() {
  for (const Kernel& kernel : bucket_.kernels) {
    for (const Step& step : kernel.steps) {
      const bool names_signal = step.kind == StepKind::kAwait || step.kind == StepKind::kPublish;
      if (!names_signal && !step.signal.empty()) {
        refuse("pairing",
               fmt::format("{}: step {} names signal \"{}\"", to_string(kernel.operation),
                           to_string(step.kind), step.signal));
        continue;
      }
      if (!names_signal) continue;
      const Signal* signal = find_signal(bucket_, step.signal);
      if (signal == nullptr) {
        refuse("pairing", fmt::format("{} {} \"{}\", which is no signal of the bucket",
                                      to_string(kernel.operation), verb(step), step.signal));
        continue;
      }
      const Role role = step.kind == StepKind::kAwait ? signal->to : signal->from;
      if (!signal->among_all() && kernel.role != role) {
        refuse("pairing",
               fmt::format("{} runs on {} ranks and {} \"{}\", which goes from {} to {}",
                           to_string(kernel.operation), to_string(kernel.role), verb(step),
                           signal->name, to_string(signal->from), to_string(signal->to)));
      }
    }
  }
  for (const Signal& signal : bucket_.signals) check_pair(signal);
}

// Each role meets in one kernel, which says that it has come before it waits for the others.
void BucketCheck::check_meeting(const Signal& signal) {
  for (const Role role : {Role::kAttention, Role::kFfn}) {
    int meets = 0;
    for (const Kernel& kernel : bucket_.kernels) {
      if (kernel.role != role || kernel.operation == Operation::kCollectView) continue;
      bool published = false;
      for (const Step& step : kernel.steps) {
        if (step.signal != signal.name) continue;
        if (step.kind == StepKind::kPublish) published = true;
        if (step.kind != StepKind::kAwait) continue;
        ++meets;
        if (!published) {
          refuse("pairing", fmt::format("{} awaits \"{}\" before it publishes it: all ranks would "
                                        "wait for each other",
                                        to_string(kernel.operation), signal.name));
        }
        if (signal.kind == SignalKind::kBarrier && !kernel.grid_sync) {
          refuse("meeting", fmt::format("{} awaits \"{}\", but its CTAs need not be resident",
                                        to_string(kernel.operation), signal.name));
        }
      }
    }
    if (meets != 1) {
      refuse("pairing", fmt::format("{} kernels of {} ranks await \"{}\", expected 1", meets,
                                    to_string(role), signal.name));
    }
  }
}

void BucketCheck::check_pair(const Signal& signal) {
  if (signal.among_all()) return check_meeting(signal);
  const std::vector<const Kernel*> publishers = kernels_with(StepKind::kPublish, signal.name);
  const std::vector<const Kernel*> waiters = kernels_with(StepKind::kAwait, signal.name);
  if (waiters.empty()) {
    refuse("pairing", fmt::format("no kernel awaits \"{}\"", signal.name));
  }
  if (publishers.empty()) {
    refuse("pairing", fmt::format("no kernel publishes \"{}\"", signal.name));
  }
  if (publishers.size() > 1) {
    refuse("pairing",
           fmt::format("both {} and {} publish \"{}\"", to_string(publishers[0]->operation),
                       to_string(publishers[1]->operation), signal.name));
  }
}

void BucketCheck::check_done() {
  const bool double_inbox = std::ranges::any_of(
      plan_.ffn.window, [](const Region& region) { return region.halves == 2; });
  if (!double_inbox) return;
  bool found = false;
  for (const Signal& signal : bucket_.signals) {
    if (signal.kind != SignalKind::kDoneWord) continue;
    found = true;
    if (signal.from != Role::kFfn) {
      refuse("done", fmt::format("done word \"{}\" comes from {} ranks", signal.name,
                                 to_string(signal.from)));
    }
    if (signal.generation_lag != 2) {
      refuse("done", fmt::format("done word \"{}\" lags {} generations; two halves need 2",
                                 signal.name, signal.generation_lag));
    }
  }
  if (!found) {
    refuse("done", "no done word: a source can lap a worker that got no rows from it");
  }
}

void BucketCheck::check_order() {
  for (const Kernel& kernel : bucket_.kernels) {
    std::optional<std::string> published;  // the first data signal
    bool awaits_done = false;
    std::optional<std::string> done;
    for (const Step& step : kernel.steps) {
      const Signal* signal = find_signal(bucket_, step.signal);
      if (signal == nullptr) continue;
      const bool is_done = signal->kind == SignalKind::kDoneWord;
      // Words of a barrier and counts have places of their own, and no rank can lap another there.
      const bool guarded = !signal->among_all();
      if (step.kind == StepKind::kPublish) {
        if (!guarded) continue;
        if (is_done) done = signal->name;
        if (!is_done && !published) published = signal->name;
      } else if (step.kind == StepKind::kAwait && is_done) {
        awaits_done = true;
        if (published) {
          refuse("order", fmt::format("{} publishes \"{}\" before it awaits \"{}\"",
                                      to_string(kernel.operation), *published, signal->name));
        }
      } else if (step.kind == StepKind::kAwait && done) {
        refuse("order", fmt::format("{} publishes \"{}\" before it awaits \"{}\"",
                                    to_string(kernel.operation), *done, signal->name));
      }
    }
    if (kernel.operation == Operation::kDispatch && published && !awaits_done) {
      refuse("order", fmt::format("dispatch publishes \"{}\" and awaits no done word", *published));
    }
  }
}

void BucketCheck::check_path() {
  if (bucket_.critical_path.empty()) refuse("path", "the critical path has no hop");
  const Hop* previous = nullptr;
  for (const Hop& hop : bucket_.critical_path) {
    const std::string name =
        fmt::format("hop {} -> {} by \"{}\"", to_string(hop.from), to_string(hop.to), hop.signal);
    const Signal* const signal = find_signal(bucket_, hop.signal);
    const bool among_all = signal != nullptr && signal->among_all();
    if (!among_all && role_of(hop.from) == role_of(hop.to)) {
      refuse("path", name + " stays within a role");
    }
    if (previous != nullptr && role_of(previous->to) != role_of(hop.from)) {
      refuse("path", fmt::format("{} follows a hop that ends on {} ranks", name,
                                 to_string(role_of(previous->to))));
    }
    const auto has = [](const std::vector<const Kernel*>& kernels, Operation operation) {
      return std::ranges::any_of(kernels,
                                 [&](const Kernel* k) { return k->operation == operation; });
    };
    if (!has(kernels_with(StepKind::kPublish, hop.signal), hop.from)) {
      refuse("path", fmt::format("{}: {} does not publish it", name, to_string(hop.from)));
    }
    if (!has(kernels_with(StepKind::kAwait, hop.signal), hop.to)) {
      refuse("path", fmt::format("{}: {} does not await it", name, to_string(hop.to)));
    }
    previous = &hop;
  }
}

void BucketCheck::check_figures() {
  const auto expect = [this](const char* name, double value) {
    if (!std::isfinite(value) || value <= 0) {
      refuse("figures", fmt::format("{} = {}", name, value));
    }
  };
  expect("dispatch_wire_bytes", bucket_.traffic.dispatch_wire_bytes);
  expect("reply_wire_bytes", bucket_.traffic.reply_wire_bytes);
  expect("worker_memory_bytes", bucket_.traffic.worker_memory_bytes);
  expect("source_memory_bytes", bucket_.traffic.source_memory_bytes);
  expect("floor", bucket_.floor.total_us());
}

// Raw row bytes could look like the generation of a packet or of a flag: what holds generations in
// one bucket never holds raw bytes in another.
void check_packets(const ExchangePlan& plan, CheckReport& report) {
  std::map<std::pair<Role, std::string>, std::string> generations;  // region -> who awaits in it
  for (const BucketPlan& bucket : plan.buckets) {
    for (const Signal& signal : bucket.signals) {
      generations.emplace(std::pair(signal.to, signal.flag_region),
                          fmt::format("\"{}\" of bucket {}", signal.name, bucket.bucket));
    }
  }
  for (const BucketPlan& bucket : plan.buckets) {
    for (const Signal& signal : bucket.signals) {
      if (signal.kind != SignalKind::kReleaseFlag) continue;
      const auto found = generations.find({signal.to, signal.data_region});
      if (found == generations.end()) continue;
      report.add("packet",
                 fmt::format("bucket {}: \"{}\" writes raw bytes into \"{}\", where {} awaits a "
                             "generation",
                             bucket.bucket, signal.name, signal.data_region, found->second));
    }
  }
}

}  // namespace

void check_protocol(const ExchangePlan& plan, CheckReport& report) {
  for (const BucketPlan& bucket : plan.buckets) BucketCheck(plan, bucket, report).run();
  check_packets(plan, report);
}

}  // namespace afdep::plan
