// A mistake to be found: emitted kernels, device headers or the plan, changed in one way.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "generator/plan/plan.h"

namespace afdep::mutation {

// Replaces text. Every occurrence, or the one that `only` numbers from 1.
struct Edit {
  // A part of the names of emitted files ("dispatch_b"), or a header ("afdep/wait.cuh").
  const char* where;
  const char* from;
  const char* to;
  int only = 0;
};

// What the mistake breaks: a rule of docs/protocol.md, or the order or data that kernels owe.
enum class Rule : std::uint8_t { kGeneration, kSlot, kReuse, kFault, kOrder, kData };
std::string_view to_string(Rule rule);

// Specs that mutants are tried on, a bit each.
enum Victim : std::uint8_t {
  kTwoByTwo = 1,   // 2A2F: packets in a small bucket, chunks in a large one; aligned, zero padding
  kView = 2,       // 2A1F: one worker, so a view
  kSlots = 4,      // 1A4F, K = 2: replies by slot
  kBulk = 8,       // 2A2F: bulk copies, enough for CTAs to share units
  kWide = 16,      // 2A2F: rows that two warps share
  kReverted = 32,  // 2A2F: every improvement reverted, packets and chunks
  kEarly = 64,  // 2A2F: a table that a warp ranks, rows that CTAs share, blocks for ends and done
  kManySlots = 128,  // 1A6F, K = 5: more replies than are in flight at once
};

struct Mutant {
  const char* name;
  Rule rule;
  std::vector<Edit> edits;
  void (*change)(plan::ExchangePlan& plan) = nullptr;
  std::uint8_t victims = kTwoByTwo;
  // Not empty: nothing observable changes, and why.
  const char* equivalent = "";
};

std::span<const Mutant> mutants();

}  // namespace afdep::mutation
