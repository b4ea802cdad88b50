// WeakMemory: what it says of two accesses that nothing orders.
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "runtime/emulator/device_memory.h"
#include "runtime/emulator/weak_memory.h"

namespace afdep::emulator {
namespace {

// The thread on whose behalf the async proxy works; its number within the block.
std::uint32_t issuer(Agent agent) { return part_of(agent) % kStoreReadPart; }

}  // namespace

// "rank 1 ffn_receive_b8 (launch 4, generation 3) block 0 thread 5".
std::string WeakMemory::name(const Stamp& stamp) const {
  const BlockRecord& block = blocks_[slot_of(stamp.agent)];
  if (block.run == nullptr) return "the host";
  const RunRecord& run = *block.run;
  std::string text = fmt::format("rank {} {} (launch {}", run.rank, *run.symbol, run.launch);
  if (run.generation != 0) text += fmt::format(", generation {}", run.generation);
  text += fmt::format(") block {}", block.block);
  const std::uint32_t part = part_of(stamp.agent);
  if (part < kStoreReadPart) return text + fmt::format(" thread {}", part);
  if (part < kBarrierPart) {
    return text + fmt::format(" thread {}, group {}", issuer(stamp.agent), stamp.time);
  }
  return text + fmt::format(", barrier {} phase {}", part - kBarrierPart, stamp.time);
}

// The missing order, in words.
std::string WeakMemory::missing() const {
  const Stamp& first = violation_.first;
  const Stamp& second = violation_.second;
  const BlockRecord& a = blocks_[slot_of(first.agent)];
  const BlockRecord& b = blocks_[slot_of(second.agent)];
  const std::uint32_t part = part_of(first.agent);
  if (violation_.kind == Violation::Kind::kProxy) {
    const char* const fence =
        b.in_shared(violation_.address) ? "fence_bulk_shared" : "fence_bulk_global";
    return is_thread(first.agent)
               ? fmt::format("no {} lies between the ordinary store and the bulk copy", fence)
               : fmt::format(
                     "the store was a bulk copy of another block: no {} lies between its "
                     "arrival and this bulk copy",
                     fence);
  }
  if (violation_.kind == Violation::Kind::kSize) {
    return "accesses of different sizes are not atomic for each other, and no causality orders the "
           "two";
  }
  if (violation_.kind == Violation::Kind::kScope) {
    return "a scope must reach the other thread: threads of one rank have GPU scope in common, "
           "ranks only system scope; and no causality orders the two";
  }
  if (violation_.kind == Violation::Kind::kBarrier) {
    return "no sync_block lies between publish_barriers and the first use";
  }
  if (part >= kBarrierPart) {
    return "no await_barrier for the end of that phase lies in between, by this thread or one that "
           "is ordered before it";
  }
  if (part >= kStoreWritePart) {
    return "no bulk_await for that group lies in between, or nothing published it after that";
  }
  if (part >= kStoreReadPart) {
    return "no bulk_await_read or bulk_await for that group lies in between, by its thread";
  }
  if (&a == &b) {
    return part / 32 == part_of(second.agent) / 32
               ? "no sync_warp or sync_block joins the two lanes in between"
               : "no sync_block joins the two threads in between";
  }
  if (a.run != nullptr && b.run != nullptr && a.run == b.run) {
    return "two blocks of one kernel: no store_release after the first that a load_acquire before "
           "the second read";
  }
  if (a.run != nullptr && b.run != nullptr && a.run->stream == b.run->stream) {
    return "the second kernel does not come after the first: no await_previous_kernel before the "
           "second access, which the stream would order";
  }
  return "no store_release after the first reached a load_acquire before the second, directly or "
         "by way of others";
}

bool WeakMemory::took_stale_packet() const {
  const RunRecord* const reader = blocks_[slot_of(violation_.first.agent)].run;
  return violation_.carried && reader != nullptr && reader->generation != 0 &&
         *violation_.carried != reader->generation;
}

std::string WeakMemory::violation() const {
  const Violation& v = violation_;
  if (v.kind == Violation::Kind::kNone) return {};
  if (v.kind == Violation::Kind::kSlots) {
    return fmt::format("more than {} blocks ran without the host waiting for all streams",
                       kMaxSlots - 1);
  }
  const BlockRecord& b = blocks_[slot_of(v.second.agent)];
  std::string where = memory_.describe_address(v.address);
  for (const BlockRecord* const block : {&b, &blocks_[slot_of(v.first.agent)]}) {
    if (!block->in_shared(v.address)) continue;
    where = fmt::format("shared memory+{:#x}",
                        static_cast<const std::byte*>(v.address) - block->shared);
    break;
  }
  std::string_view what = "data race";
  switch (v.kind) {
    case Violation::Kind::kSize:
      what = "data race: atomic accesses of different sizes";
      break;
    case Violation::Kind::kScope:
      what = "data race: scope too narrow";
      break;
    case Violation::Kind::kProxy:
      what = "missing proxy fence";
      break;
    case Violation::Kind::kOverwrite:
      what = "inbox slot overwritten before its reader is proven done (docs/protocol.md, rule 3)";
      if (took_stale_packet()) {
        // A look ahead of the wait is no mistake by itself, but the slot was not free either.
        what =
            "a packet of an old generation was taken for the awaited one (docs/protocol.md, rule "
            "1), or its slot overwritten before its reader is proven done (rule 3)";
      }
      break;
    case Violation::Kind::kBarrier:
      what = "bulk barrier used before its initialisation is known";
      break;
    default:
      // Something that was sent is overwritten while its reader may be at it.
      if (std::string_view(v.first_does).find("load") != std::string_view::npos &&
          blocks_[slot_of(v.first.agent)].run != nullptr && b.run != nullptr &&
          blocks_[slot_of(v.first.agent)].run->rank != b.run->rank) {
        what =
            "data race: memory overwritten before its reader is proven done (docs/protocol.md, "
            "rule 3)";
      }
      break;
  }
  const std::string order =
      v.kind == Violation::Kind::kOverwrite
          ? "nothing that the reader sent after its load was read before the store"
          : missing();
  return fmt::format(
      "{} at {}\n  first: {} by {}, at {}\n  then: {} of {} bytes by {}, at {}\n  missing: {}",
      what, where, v.first_does, name(v.first), describe(v.first.site), v.second_does, v.bytes,
      name(v.second), describe(v.second.site), order);
}

}  // namespace afdep::emulator
