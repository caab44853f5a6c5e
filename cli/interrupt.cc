#include "interrupt.h"

namespace weir::cli {
namespace {

volatile std::sig_atomic_t g_asked = 0;

void Ask(int) { g_asked = 1; }

}  // namespace

Interrupt::Interrupt() {
  g_asked = 0;
  struct sigaction action {};
  action.sa_handler = Ask;
  // After the first one the second does what it always did.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, &int_before_);
  sigaction(SIGTERM, &action, &term_before_);
}

Interrupt::~Interrupt() {
  sigaction(SIGINT, &int_before_, nullptr);
  sigaction(SIGTERM, &term_before_, nullptr);
}

bool Interrupt::asked() const { return g_asked != 0; }

}  // namespace weir::cli
