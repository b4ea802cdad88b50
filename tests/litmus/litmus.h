// Litmus tests: small programs of a few threads, each with the outcomes that the memory model
// allows and those that it forbids.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace afdep::litmus {

// Each thread is a rank of its own, one block of 32 threads of which only lane 0 runs the text
// (unless it says otherwise). The text may use
//   X, Y, Z      three locations of the first rank's memory, a 16-byte cell each, zero at first
//   set(i, v)    register i of the outcome; never set: "-"
//   packet(v)    a packet that holds v everywhere
//   until(at, v) polls a packet until it has generation v
// and everything of the device headers.
struct Litmus {
  std::string name{};
  std::string rule{};  // of docs/memory-model.md
  std::string what{};  // one line for the table
  std::vector<std::string> threads{};
  int registers = 0;
  // Outcomes: the registers side by side, "10", or the beginning of the report that ends the run.
  // All of these are reached, and no others.
  std::vector<std::string> allowed{};
  // Those that matter among the others.
  std::vector<std::string> forbidden{};
  // Allowed by PTX, but stronger here.
  std::vector<std::string> not_produced{};
  // Kernels of one stream rather than of a rank each; the later ones launched programmatically.
  bool one_stream = false;
  std::uint64_t seeds = 400;
  std::uint32_t first_y = 0;  // what Y holds at first
  // The rank of each thread; empty: a rank each.
  std::vector<int> ranks{};
};

const std::vector<Litmus>& catalogue();

// The outcomes of all seeds.
std::set<std::string> outcomes(const Litmus& litmus);

// Line `name` of the table in docs/memory-model.md, without its line end.
std::string table_row(const Litmus& litmus);

}  // namespace afdep::litmus
