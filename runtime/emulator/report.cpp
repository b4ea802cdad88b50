#include "runtime/emulator/report.h"

#include <signal.h>

#include <algorithm>

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "templates/device/common/afdep/abi.h"

namespace afdep::emulator {
namespace {

// Generations by which a peer can be ahead in any test.
constexpr std::uint32_t kLapped = 64;

std::string phase_name(std::uint32_t phase) {
  switch (phase) {
    case kPhaseDone:
      return "done";
    case kPhaseTable:
      return "table";
    case kPhaseRow:
      return "row";
    case kPhaseReply:
      return "reply";
    default:
      return std::to_string(phase);
  }
}

std::string label(const KernelRun& run) {
  return fmt::format("rank {} {} (launch {})", run.launch->rank, *run.launch->symbol, run.number);
}

std::string label(const Thread& thread) {
  return fmt::format("{} block {} thread {}", label(*thread.warp->block->run), thread.id.block,
                     thread.id.thread);
}

// "0-31, 64": ascending and distinct numbers.
std::string ranges(const std::set<int>& numbers) {
  std::string text;
  for (auto i = numbers.begin(); i != numbers.end();) {
    const int first = *i;
    int last = first;
    while (++i != numbers.end() && *i == last + 1) ++last;
    if (!text.empty()) text += ", ";
    text += first == last ? std::to_string(first) : fmt::format("{}-{}", first, last);
  }
  return text;
}

// What a thread does, without what differs between threads that do the same.
std::string activity(const Thread& thread) {
  switch (thread.state) {
    case ThreadState::kRunnable:
      return thread.context == nullptr ? "has not started" : "can run";
    case ThreadState::kPolling:
      return fmt::format("waits in phase {} for peer {}, item {}: saw {}, expected {}",
                         phase_name(thread.wait.phase), thread.wait.peer, thread.wait.item,
                         thread.wait.seen, thread.wait.expected);
    case ThreadState::kCollective:
      return fmt::format("waits in {} for its warp", name_of(thread.warp->kind));
    case ThreadState::kBarrier:
      return "waits in sync_block";
    case ThreadState::kPreviousKernel:
      return "waits in await_previous_kernel";
    case ThreadState::kBulk:
      switch (thread.bulk_wait.kind) {
        case BulkWait::Kind::kBarrier:
          return fmt::format("waits in await_barrier for the end of a phase of parity {}",
                             thread.bulk_wait.parity);
        case BulkWait::Kind::kChange:
          return fmt::format("looks in barrier_passed for the end of a phase of parity {}",
                             thread.bulk_wait.parity);
        case BulkWait::Kind::kRead:
        case BulkWait::Kind::kComplete:
          break;
      }
      return fmt::format("waits for its bulk stores up to group {}", thread.bulk_wait.group);
    case ThreadState::kEnded:
      return "has ended";
  }
  return "is lost";
}

// Threads that do the same in one block, in the order of their first thread.
class Groups {
 public:
  void add(const Thread& thread) {
    const std::string what = activity(thread);
    const auto found =
        std::ranges::find(groups_, what, [](const Group& group) { return group.what; });
    if (found != groups_.end()) {
      found->threads.insert(thread.id.thread);
      return;
    }
    const bool polls = thread.state == ThreadState::kPolling;
    groups_.push_back({what, {thread.id.thread}, polls ? thread.wait.at : nullptr});
  }

  void print(const std::string& prefix, const DeviceMemory& memory,
             std::vector<std::string>& lines) const {
    for (const Group& group : groups_) {
      std::string line =
          fmt::format("{}thread{} {}: {}", prefix, group.threads.size() == 1 ? "" : "s",
                      ranges(group.threads), group.what);
      if (group.at != nullptr) {
        line += fmt::format("{} {}", group.threads.size() == 1 ? ", at" : ", first at",
                            memory.describe_address(group.at));
      }
      lines.push_back(std::move(line));
    }
  }

 private:
  struct Group {
    std::string what;
    std::set<int> threads;
    const void* at;
  };
  std::vector<Group> groups_;
};

void list_waiters(const Block& block, const DeviceMemory& memory, std::vector<std::string>& lines) {
  Groups groups;
  for (const Thread& thread : block.threads) {
    if (thread.state != ThreadState::kEnded) groups.add(thread);
  }
  groups.print(fmt::format("{} block {} ", label(*block.run), block.index), memory, lines);
}

void list_waiters(const KernelRun& run, const DeviceMemory& memory,
                  std::vector<std::string>& lines) {
  std::vector<const Block*> blocks;
  for (const auto& block : run.live) blocks.push_back(block.get());
  std::ranges::sort(blocks, {}, &Block::index);
  for (const Block* block : blocks) list_waiters(*block, memory, lines);
  if (const std::size_t left = run.order.size() - run.started; left > 0) {
    lines.push_back(fmt::format("{}: {} of {} blocks have no room to start", label(run), left,
                                run.launch->grid));
  }
}

std::vector<std::string> waiters(const Scheduler& scheduler) {
  std::vector<std::string> lines;
  for (const auto& stream : scheduler.streams()) {
    for (const QueuedOperation& queued : stream->queue) {
      if (queued.run != nullptr) list_waiters(*queued.run, scheduler.memory(), lines);
    }
    if (stream->queue.empty()) continue;
    const QueuedOperation& front = stream->queue.front();
    if (!front.done && front.operation.kind == Operation::Kind::kWait) {
      lines.push_back(
          fmt::format("stream {}: waits for an event that was not recorded yet", stream->number));
    }
  }
  return lines;
}

// What the waits of a deadlock have in common, in the words of docs/protocol.md; empty if nothing
// known.
std::string hazard(const Scheduler& scheduler) {
  bool lapped = false;
  bool unproven = false;
  for (const auto& stream : scheduler.streams()) {
    for (const QueuedOperation& queued : stream->queue) {
      if (queued.run == nullptr) continue;
      for (const auto& block : queued.run->live) {
        for (const Thread& thread : block->threads) {
          if (thread.state != ThreadState::kPolling) continue;
          // Generations run 1, ..., kLastGeneration, 1, ...: a few ahead, across the wrap too.
          std::uint32_t ahead = thread.wait.seen - thread.wait.expected;
          if (thread.wait.seen < thread.wait.expected) ahead -= 1;
          const bool newer = thread.wait.seen != 0 && ahead >= 1 && ahead <= kLapped;
          if (thread.wait.phase == kPhaseDone) {
            unproven = true;
          } else {
            lapped |= newer;
          }
        }
      }
    }
  }
  if (lapped) {
    return "\n  a newer generation stands where an older one is awaited: the place was written "
           "again "
           "before it was read (rule 3: reuse needs proof)";
  }
  if (unproven) {
    return "\n  a done word does not come: without it an inbox half is never written again (rule "
           "3: "
           "reuse needs proof)";
  }
  return {};
}

std::vector<std::string> warp_states(const Warp& warp, const DeviceMemory& memory) {
  std::vector<std::string> lines;
  Groups groups;
  for (const Thread& thread : warp.threads) groups.add(thread);
  groups.print("", memory, lines);
  return lines;
}

std::vector<std::string> block_states(const Block& block, const DeviceMemory& memory) {
  std::vector<std::string> lines;
  Groups groups;
  for (const Thread& thread : block.threads) groups.add(thread);
  groups.print("", memory, lines);
  return lines;
}

void append(std::string& text, const std::vector<std::string>& lines) {
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i == kReportedLines) {
      text += fmt::format("\n  and {} more", lines.size() - i);
      return;
    }
    text += "\n  " + lines[i];
  }
}

std::string access_text(const Fault& fault) {
  return fmt::format("{} of {} bytes", fault.store ? "store" : "load", fault.bytes);
}

}  // namespace

const char* name_of(Collective kind) {
  switch (kind) {
    case Collective::kSync:
      return "sync_warp";
    case Collective::kBallot:
      return "ballot";
    case Collective::kMatch:
      return "match";
    case Collective::kReduceOr:
      return "reduce_or";
    case Collective::kShuffle:
      return "shuffle";
    case Collective::kShuffleUp:
      return "shuffle_up";
  }
  return "collective";
}

Failure describe(const Fault& fault, const Scheduler& scheduler, const ScheduleOptions& options) {
  using Kind = Fault::Kind;
  const DeviceMemory& memory = scheduler.memory();
  const std::string who = fault.thread == nullptr ? std::string() : label(*fault.thread);
  const auto where = [&] { return memory.describe_address(fault.address); };
  std::string text;
  switch (fault.kind) {
    case Kind::kNone:
    case Kind::kRedundant:
      AFDEP_CHECK(false, "a run without a fault has nothing to describe");
      break;
    case Kind::kUnowned:
      text =
          fmt::format("{}: {} at {}, which is no device memory", who, access_text(fault), where());
      break;
    case Kind::kMisaligned:
      text =
          fmt::format("{}: {} at {:#x} ({}), which is not {}-byte aligned", who, access_text(fault),
                      reinterpret_cast<std::uintptr_t>(fault.address), where(), fault.bytes);
      break;
    case Kind::kOutsideRanges:
      text = fmt::format("{}: {} at {}, outside the regions that rank {} may write", who,
                         access_text(fault), where(), fault.thread->id.rank);
      break;
    case Kind::kHostScope:
      text = fmt::format(
          "{}: {} of GPU scope at {}, which the host shares: only system scope reaches it", who,
          access_text(fault), where());
      break;
    case Kind::kTrap:
      text = fmt::format("{}: trap", who);
      break;
    case Kind::kSignal:
      text = fmt::format("{}: {} at {:#x}, not through a device function", who,
                         sigdescr_np(static_cast<int>(fault.bytes)),
                         reinterpret_cast<std::uintptr_t>(fault.address));
      break;
    case Kind::kStackOverflow:
      text = fmt::format("{}: needs more than {} bytes of stack", who, StackPool::kBytes);
      break;
    case Kind::kDivergedWarp:
      text = fmt::format("{}: warp {} can never complete {}: not all its lanes take part", who,
                         fault.thread->id.thread / kLanes, fault.operation);
      text += fmt::format("\n  this thread {}", fault.thread->state == ThreadState::kEnded
                                                    ? "has ended"
                                                    : fmt::format("calls {}", fault.operation));
      append(text, warp_states(*fault.thread->warp, memory));
      break;
    case Kind::kDivergedBlock:
      text = fmt::format("{}: the block can never complete {}: not all its threads take part", who,
                         fault.operation);
      text += fmt::format("\n  this thread {}", fault.thread->state == ThreadState::kEnded
                                                    ? "has ended"
                                                    : fmt::format("calls {}", fault.operation));
      append(text, block_states(*fault.thread->warp->block, memory));
      break;
    case Kind::kSharedTooSmall:
      text = fmt::format("{}: uses {} bytes of shared memory, launched with {}", who, fault.bytes,
                         fault.thread->warp->block->run->launch->shared_bytes);
      break;
    case Kind::kSharedOverrun:
      text = fmt::format("{} block {}: a thread wrote behind the block's {} bytes of shared memory",
                         label(*fault.thread->warp->block->run), fault.thread->id.block,
                         fault.thread->warp->block->run->launch->shared_bytes);
      break;
    case Kind::kSharedAddress:
      text = fmt::format("{}: add_shared at {:#x}, outside the block's {} bytes of shared memory",
                         who, reinterpret_cast<std::uintptr_t>(fault.address),
                         fault.thread->warp->block->run->launch->shared_bytes);
      break;
    case Kind::kRawAccess:
      text = fmt::format("{}: raw access outside the device headers: {} at {}", who,
                         access_text(fault), where());
      break;
    case Kind::kBulkMisuse:
      text = fmt::format("{}: {}: {}", who, fault.operation,
                         fmt::format(fmt::runtime(fault.detail), fault.values[0], fault.values[1]));
      break;
    case Kind::kMemory:
      text = scheduler.model().violation();
      break;
    case Kind::kLivelock:
      text = fmt::format(
          "{}: livelock: {} accesses of all ranks in a row neither stored nor joined "
          "nor ended anything; this one was {}",
          who, options.fruitless_accesses,
          fault.address == nullptr ? "a look at the clock"
                                   : fmt::format("a {} at {}", access_text(fault), where()));
      break;
    case Kind::kStall:
      text = "deadlock: no thread of any rank can run";
      text += hazard(scheduler);
      append(text, waiters(scheduler));
      break;
    case Kind::kNoMemory:
      text = fmt::format("{}: no memory for another stack of {} bytes", who, StackPool::kBytes);
      break;
  }
  if (fault.site != 0) text += fmt::format("; at {}", describe(fault.site));
  const ErrorCode code =
      fault.kind == Kind::kNoMemory ? ErrorCode::kMemory : ErrorCode::kVerification;
  return Failure(code, std::move(text), fmt::format("schedule of seed {}", options.seed));
}

}  // namespace afdep::emulator
