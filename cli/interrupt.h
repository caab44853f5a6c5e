// Ctrl-C as a question: whoever works asks whether to stop.

#ifndef WEIR_CLI_INTERRUPT_H_
#define WEIR_CLI_INTERRUPT_H_

#include <csignal>

namespace weir::cli {

// While one of these lives, the first SIGINT or SIGTERM is kept, and a second
// ends the program.  One at a time.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool asked() const;

 private:
  struct sigaction int_before_ {};
  struct sigaction term_before_ {};
};

}  // namespace weir::cli

#endif  // WEIR_CLI_INTERRUPT_H_
