// Replay tokens: all that a failing run depends on, as one word to paste.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/support/result.h"

namespace afdep::verify {

struct Token {
  std::string version;       // of afdep
  std::string spec_digest;   // 32 hex digits, of the spec as given
  std::uint8_t explore = 0;  // Explore
  std::uint64_t seed = 0;
  int bucket = 0;
  bool true_size = false;
  bool faults = true;
  bool whole = true;
  // A shrunk case; 0: as the spec says.
  int attention_ranks = 0;
  int ffn_ranks = 0;
  int tokens = 0;
  int exchanges = 0;
  // Exhaustive: which of its searches, and the choices of the schedule.
  int search = 0;
  int fill = 0;
  std::vector<std::uint32_t> choices;
  // Hash of all choices of the failing run: equal hashes are equal runs, to the instruction.
  std::uint64_t trace = 0;

  friend bool operator==(const Token&, const Token&) = default;
};

// "r1." and base64url digits.
std::string encode(const Token& token);

// kVerification if the text is damaged or no token.
Result<Token> decode(std::string_view text);

// kVersionSkew, naming both, if the token is of another version of afdep or of another spec.
Result<void> check_token(const Token& token, std::string_view version, std::string_view spec_digest,
                         const std::string& file);

}  // namespace afdep::verify
