#include "cli/deferred_signals.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>

namespace afdep::cli {
namespace {

TEST(DeferredSignalsDeathTest, TheProcessGetsTheSignalWhenTheWorkIsDone) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    EXPECT_EXIT(
        {
          std::signal(signal, SIG_DFL);
          {
            const DeferredSignals deferred;
            std::raise(signal);
            std::fputs("still working", stderr);
          }
          std::fputs("never reached", stderr);
        },
        ::testing::KilledBySignal(signal), "still working$");
  }
}

TEST(DeferredSignalsDeathTest, WhatIsIgnoredStaysIgnored) {
  EXPECT_EXIT(
      {
        std::signal(SIGHUP, SIG_IGN);
        {
          const DeferredSignals deferred;
          std::raise(SIGHUP);
        }
        std::_Exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(DeferredSignalsDeathTest, NothingHappensWithoutASignal) {
  EXPECT_EXIT(
      {
        {
          const DeferredSignals deferred;
        }
        std::_Exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace afdep::cli
