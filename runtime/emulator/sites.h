// Where in an emitted text a call into the emulator stands. Numbers are given when a kernel is
// compiled and hold for the life of the process.
#pragma once

#include <cstdint>
#include <string>

namespace afdep::emulator {

// Number of a call; 0: nobody knows.
using Site = std::uint32_t;

struct SiteText {
  std::string place;   // "attention_dispatch_b8.cu:57:9", of the emitted text
  std::string device;  // "await_flag, afdep/wait.cuh:58", the device function there; may be empty
};

// Safe to call from several threads.
Site add_site(SiteText text);

// "attention_dispatch_b8.cu:57:9 (await_flag, afdep/wait.cuh:58)"; "an unknown place" for 0.
std::string describe(Site site);

}  // namespace afdep::emulator
