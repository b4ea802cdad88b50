#include "generator/plan/layout.h"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/support/check.h"

namespace afdep::plan {
namespace {

constexpr std::int64_t kRegionAlignment = 256;
constexpr int kPacketBytes = 16;
constexpr int kPacketPayloadBytes = 12;
constexpr int kWordBytes = 4;

std::int64_t align_up(std::int64_t bytes) {
  return (bytes + kRegionAlignment - 1) / kRegionAlignment * kRegionAlignment;
}

// Appends regions one after another.
class Arena {
 public:
  explicit Arena(std::vector<Region>& regions) : regions_(regions) {}

  void add(std::string name, int halves, int peers, std::int64_t items, std::int64_t item_bytes,
           std::string purpose) {
    if (items == 0) return;
    Region region;
    region.name = std::move(name);
    region.offset = end_;
    region.halves = halves;
    region.peers = peers;
    region.items = items;
    region.item_bytes = item_bytes;
    region.peer_bytes = align_up(items * item_bytes);
    region.half_bytes = peers * region.peer_bytes;
    region.purpose = std::move(purpose);
    end_ += region.bytes();
    regions_.push_back(std::move(region));
  }

  [[nodiscard]] std::int64_t end() const { return end_; }

 private:
  std::vector<Region>& regions_;
  std::int64_t end_ = 0;
};

// Before everything else, so that both windows have them at the same place.
void add_meeting_places(Arena& window, const ExchangePlan& plan) {
  for (const Part part : {Part::kFirst, Part::kSecond}) {
    if (plan.ablation.entry_barrier) {
      window.add(std::string(entry_region(part)), 1, plan.ranks(), 1, kGateBytes,
                 "a word a rank, attention first: the generation in which it has come here");
    }
    if (plan.ablation.exit_barrier) {
      window.add(std::string(exit_region(part)), 1, plan.ranks(), 1, kGateBytes,
                 "a word a rank, attention first: the generation of which it has sent all");
    }
    if (plan.ablation.dummy_experts) {
      window.add(std::string(no_rows_region(part)), 2, plan.ranks(),
                 no_rows_packets(plan.local_experts(), part), kPacketBytes,
                 "counts of ranks that have no rows for this one, a block a rank");
    }
  }
}

void add_gates(Arena& workspace, const ExchangePlan& plan, int ctas) {
  if (!plan.ablation.entry_barrier && !plan.ablation.exit_barrier) return;
  workspace.add("gates", 1, 1, 4, kGateBytes,
                "a word a barrier: block 0 of a kernel lets the other blocks pass");
  if (plan.ablation.exit_barrier) {
    workspace.add("block_gates", 1, 1, ctas, kGateBytes,
                  "a word a block: it has sent all; block 0 reads them");
  }
}

}  // namespace

std::string_view entry_region(Part part) {
  return part == Part::kFirst ? "entry_dispatch" : "entry_combine";
}
std::string_view exit_region(Part part) {
  return part == Part::kFirst ? "exit_dispatch" : "exit_combine";
}
std::string_view no_rows_region(Part part) {
  return part == Part::kFirst ? "no_rows_dispatch" : "no_rows_combine";
}
int no_rows_packets(int local_experts, Part part) {
  return part == Part::kFirst ? count_packets(local_experts) : 1;
}
std::int64_t gate_offset(Part part, bool exit) {
  return (part == Part::kFirst ? 0 : 2 * kGateBytes) + (exit ? kGateBytes : 0);
}

int table_entry_bytes(int top_k) { return (top_k + 1) / 2 * kPacketBytes; }

int row_packets(int row_bytes) {
  constexpr int kLongestRun = 4;
  const int part_bytes = kLongestRun * kPacketPayloadBytes;
  return (row_bytes + part_bytes - 1) / part_bytes * kLongestRun;
}

int count_packets(int experts) { return (experts + 5) / 6; }

int choice_packets(int top_k) { return 2 * ((top_k + 2) / 3); }

int unit_packets(int ffn_ranks, int top_k) {
  const int words = top_k + (ffn_ranks > top_k ? 1 : 0);
  return (words + 2) / 3;
}

int reply_slots(int ffn_ranks, int top_k) { return std::min(ffn_ranks, top_k); }

RoleLayout attention_layout(const ExchangePlan& plan, const InboxSizes& sizes) {
  // A union inbox has a block for every rank, whether or not it ever writes there.
  const int workers = plan.ablation.union_buffers ? plan.ranks() : plan.ffn_ranks;
  const int slots = reply_slots(workers, plan.top_k);
  RoleLayout layout;
  layout.role = Role::kAttention;
  Arena window(layout.window);
  add_meeting_places(window, plan);
  window.add("done", 1, 1, plan.ffn_ranks, kWordBytes,
             "a word a worker: the newest generation that it has read to the end");
  window.add("reply_packets", 2, slots, sizes.flag_in_data_bucket,
             std::int64_t{row_packets(plan.row_bytes)} * kPacketBytes,
             "replies of flag_in_data buckets, a block a reply slot, an item a token");
  if (plan.has_view) {
    window.add("view", 1, 1, plan.capacity, plan.row_bytes,
               "collected rows that the caller reads in place; the next dispatch orders its reuse");
  } else {
    window.add("replies", 2, slots, sizes.chunked_bucket, plan.row_bytes,
               "replies of chunked and bulk buckets, a block a reply slot, an item a token");
  }
  window.add("reply_flags", 2, workers, sizes.reply_chunks, kWordBytes,
             "a word a worker and chunk of tokens: the generation whose replies are there");
  layout.window_bytes = window.end();
  Arena workspace(layout.workspace);
  workspace.add("destinations", 1, 1, plan.capacity, 8,
                "a mask of workers a token: dispatch writes it, collect reads it");
  add_gates(workspace, plan, sizes.attention_ctas);
  layout.workspace_bytes = workspace.end();
  return layout;
}

RoleLayout ffn_layout(const ExchangePlan& plan, const InboxSizes& sizes) {
  RoleLayout layout;
  layout.role = Role::kFfn;
  Arena window(layout.window);
  const int sources = plan.ablation.union_buffers ? plan.ranks() : plan.attention_ranks;
  add_meeting_places(window, plan);
  window.add("table", 2, sources, sizes.table_bucket, table_entry_bytes(plan.top_k),
             "top-k tables, a block a source, an item a token: two choices a packet");
  window.add("row_packets", 2, sources, sizes.flag_in_data_bucket,
             std::int64_t{row_packets(plan.row_bytes)} * kPacketBytes,
             "rows of flag_in_data buckets, a block a source, an item a token");
  window.add("rows", 2, sources, sizes.chunked_bucket, plan.row_bytes,
             "raw rows of chunked and bulk buckets, a block a source, an item a token");
  window.add("counts", 2, sources, sizes.bulk_slices,
             std::int64_t{count_packets(plan.local_experts())} * kPacketBytes,
             "counts of bulk buckets, a block a source, an item a slice: six experts a packet");
  window.add(
      "choices", 2, sources, sizes.bulk_bucket,
      std::int64_t{choice_packets(plan.top_k)} * kPacketBytes,
      "ranked choices of bulk buckets, a block a source, an item a token: three a packet, and "
      "as many packets of weights");
  window.add("row_flags", 2, sources, sizes.dispatch_chunks, kWordBytes,
             "a word a source and chunk of tokens: the generation whose rows are there");
  layout.window_bytes = window.end();
  Arena workspace(layout.workspace);
  const std::int64_t units = std::int64_t{plan.attention_ranks} * plan.capacity;
  workspace.add("unit_rows", 1, 1, units, std::int64_t{plan.top_k} * kWordBytes,
                "rows of a (source, token) unit: receive writes them, reply reads them");
  workspace.add("unit_packets", 1, 1,
                std::int64_t{plan.attention_ranks} * sizes.flag_in_data_bucket,
                std::int64_t{unit_packets(plan.ffn_ranks, plan.top_k)} * kPacketBytes,
                "the same of flag_in_data buckets whose reply looks before receive has ended");
  if (plan.ffn_ranks > plan.top_k) {
    workspace.add("unit_slots", 1, 1, units, kWordBytes,
                  "reply slot of a unit: receive writes it, reply reads it");
  }
  add_gates(workspace, plan, sizes.ffn_ctas);
  layout.workspace_bytes = workspace.end();
  return layout;
}

const Region& region_of(const RoleLayout& layout, std::string_view name) {
  for (const std::vector<Region>* regions : {&layout.window, &layout.workspace}) {
    for (const Region& region : *regions) {
      if (region.name == name) return region;
    }
  }
  fail_check("the layout has no region " + std::string(name), std::source_location::current());
}

}  // namespace afdep::plan
