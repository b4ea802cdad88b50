// Where everything lies in the registered window and the workspace of each role.
#pragma once

#include <cstdint>
#include <string_view>

#include "generator/plan/plan.h"

namespace afdep::plan {

// Tokens of the largest bucket of each protocol; 0: no bucket uses it. Packets and raw rows never
// share bytes: a raw row could hold the generation that a packet's reader waits for.
struct InboxSizes {
  int capacity = 0;
  int flag_in_data_bucket = 0;
  int table_bucket = 0;    // flag_in_data and chunked: whole top-k tables
  int chunked_bucket = 0;  // chunked and bulk: raw rows
  int bulk_bucket = 0;
  int bulk_slices = 0;      // of one source
  int dispatch_chunks = 0;  // flags of one source at one worker
  int reply_chunks = 0;     // flags of one worker at one source
  int attention_ctas = 0;   // of a kernel at most
  int ffn_ctas = 0;
};

// Bytes of one token's top-k table entry: two choices a 16-byte packet.
int table_entry_bytes(int top_k);
// Packets of one row at most: 12 bytes of it in each, in parts of four packets.
int row_packets(int row_bytes);
// Packets of the counts of one slice for one worker's experts: six 16-bit counts each.
int count_packets(int experts);
// Packets of one token's ranked choices: three packed choices or three weights each.
int choice_packets(int top_k);
// Packets of what receive tells reply of a unit: a row a choice, and the reply slot where there are
// slots.
int unit_packets(int ffn_ranks, int top_k);
// Reply slots of one source: a worker's index, or with more workers than choices its place among
// the token's workers.
int reply_slots(int ffn_ranks, int top_k);

// The regions through which all ranks meet, in either role's window at the same place.
enum class Part : std::uint8_t { kFirst, kSecond };  // dispatch and receive, reply and collect
std::string_view entry_region(Part part);            // "entry_dispatch", "entry_combine"
std::string_view exit_region(Part part);             // "exit_dispatch", "exit_combine"
std::string_view no_rows_region(Part part);          // "no_rows_dispatch", "no_rows_combine"
// Packets by which a rank says that it has no rows.
int no_rows_packets(int local_experts, Part part);
// Gates of a rank's workspace: through which block 0 of a kernel lets the others pass.
std::int64_t gate_offset(Part part, bool exit);
inline constexpr int kGateBytes = 16;

RoleLayout attention_layout(const ExchangePlan& plan, const InboxSizes& sizes);
RoleLayout ffn_layout(const ExchangePlan& plan, const InboxSizes& sizes);

// Precondition: the layout has it.
const Region& region_of(const RoleLayout& layout, std::string_view name);

}  // namespace afdep::plan
