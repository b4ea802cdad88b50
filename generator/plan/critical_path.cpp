#include "generator/plan/critical_path.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace afdep::plan {
namespace {

using Chain = std::vector<Hop>;

// One role's steps in the order of its stream, and the longest chain that it has seen the end of.
struct Program {
  std::vector<std::pair<Operation, const Step*>> steps;
  std::size_t next = 0;
  Chain seen;
};

class Simulation {
 public:
  Simulation(const ExchangePlan& plan, const BucketPlan& bucket, bool with_rows)
      : plan_(plan), bucket_(bucket), with_rows_(with_rows) {
    for (const Kernel& kernel : bucket.kernels) {
      if (kernel.operation == Operation::kCollectView) continue;  // instead of collect
      for (const Step& step : kernel.steps) {
        program(kernel.role).steps.emplace_back(kernel.operation, &step);
      }
    }
  }

  Chain run() {
    bool moved = true;
    while (moved) {
      moved = advance(Role::kAttention);
      moved = advance(Role::kFfn) || moved;
    }
    const Chain& source = program(Role::kAttention).seen;
    const Chain& worker = program(Role::kFfn).seen;
    return worker.size() > source.size() ? worker : source;
  }

 private:
  Program& program(Role role) { return programs_[role == Role::kAttention ? 0 : 1]; }

  // True if the role has taken a step.
  bool advance(Role role) {
    Program& mine = program(role);
    const std::size_t before = mine.next;
    while (mine.next < mine.steps.size()) {
      const auto& [operation, step] = mine.steps[mine.next];
      const auto signal = std::ranges::find(bucket_.signals, step->signal, &Signal::name);
      if (signal != bucket_.signals.end() && counts(*signal)) {
        if (step->kind == StepKind::kPublish) {
          Chain chain = mine.seen;
          chain.push_back({operation, operation, signal->name});
          published_[{signal->name, role}] = std::move(chain);
        } else if (step->kind == StepKind::kAwait && !await(role, operation, *signal)) {
          break;
        }
      }
      ++mine.next;
    }
    return mine.next > before;
  }

  [[nodiscard]] bool counts(const Signal& signal) const {
    if (signal.kind == SignalKind::kDoneWord) return false;
    return with_rows_ || (signal.name != "rows" && signal.name != "replies");
  }

  // False if it has not been published yet.
  bool await(Role role, Operation operation, const Signal& signal) {
    const Role other = role == Role::kAttention ? Role::kFfn : Role::kAttention;
    std::vector<Role> senders{other};
    const int own_ranks = role == Role::kAttention ? plan_.attention_ranks : plan_.ffn_ranks;
    if (signal.among_all() && own_ranks > 1) senders.push_back(role);
    for (const Role sender : senders) {
      if (!published_.contains({signal.name, sender})) return false;
    }
    Chain& seen = program(role).seen;
    for (const Role sender : senders) {
      Chain chain = published_.at({signal.name, sender});
      chain.back().to = operation;
      // Of equals the newest message with data.
      if (signal.among_all() ? chain.size() > seen.size() : chain.size() >= seen.size()) {
        seen = std::move(chain);
      }
    }
    return true;
  }

  const ExchangePlan& plan_;
  const BucketPlan& bucket_;
  bool with_rows_;
  std::array<Program, 2> programs_;
  std::map<std::pair<std::string, Role>, Chain> published_;
};

}  // namespace

Chain longest_chain(const ExchangePlan& plan, const BucketPlan& bucket, bool with_rows) {
  return Simulation(plan, bucket, with_rows).run();
}

}  // namespace afdep::plan
