// The commands of afdep-gen. Each returns the process's exit code.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace afdep::cli {

struct GenerateArguments {
  std::string spec;  // everywhere: a path, or "-"
  std::string out;
  std::vector<std::string> arches;  // empty: the spec's
  bool emit_only = false;
  bool trace = false;
  bool json = false;
};
int run_generate(const GenerateArguments& arguments);

struct CheckArguments {
  std::vector<std::string> specs;
  bool json = false;
};
int run_check(const CheckArguments& arguments);

struct PrintArguments {
  std::string spec;
  bool resolved = false;
};
int run_print(const PrintArguments& arguments);

struct PlanArguments {
  std::string spec;
  std::string svg;  // file; empty: none
  int bucket = 0;   // 0: every bucket
  bool json = false;
};
int run_plan(const PlanArguments& arguments);

struct DiffArguments {
  std::string old_spec;
  std::string new_spec;
};
int run_diff(const DiffArguments& arguments);

struct VerifyArguments {
  std::string spec;
  int seeds = 0;           // 0: the default number
  std::uint64_t seed = 0;  // 0: none named; else only this one
  int bucket = 0;          // 0: every bucket
  bool true_size = false;
  std::string explore = "all";
  std::string replay;  // a token; empty: none
  bool faults = true;
  bool shrink = true;
  bool ledger = false;
  bool json = false;
};
int run_verify(const VerifyArguments& arguments);

struct MatrixArguments {
  std::string file;
  int jobs = 2;
  int seeds = 0;  // 0: the default number
  int timeout_s = 300;
  int cell = 0;  // 0: every cell
  bool emit_only = false;
  bool no_compile = false;
  bool fresh = false;
  std::string state_folder;  // empty: in the cache folder
  std::string junit;         // file; empty: none
  std::string html;          // file; empty: none
  bool json = false;
};
int run_matrix(const MatrixArguments& arguments);

}  // namespace afdep::cli
