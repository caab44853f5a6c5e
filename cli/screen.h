// A terminal taken over for a full-screen view, and given back whatever ends
// the view: a key, Ctrl-C, a hangup, or the destructor.

#ifndef WEIR_CLI_SCREEN_H_
#define WEIR_CLI_SCREEN_H_

#include <termios.h>

#include <optional>
#include <string_view>

#include "weir/time.h"

namespace weir::cli {

// One at a time.  While it lives, SIGINT, SIGTERM, SIGHUP, SIGWINCH and
// SIGTSTP arrive here and nowhere else.
class Screen {
 public:
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // Replaces what is shown, without flicker.  False when the terminal is gone.
  bool Draw(std::string_view page) const;

  enum class Event { kTimeout, kResized, kKey, kEnd };
  struct Input {
    Event event = Event::kTimeout;
    char key = 0;
  };
  // Waits for a key, a signal or the time to be over.  Suspends the program on
  // Ctrl-Z and reports kResized when it goes on.
  Input Wait(Duration time);

 private:
  void Enter();
  void Leave() const;
  Input ReadSignal();

  int signals_ = -1;
  std::optional<termios> before_;  // Nothing when stdin is no terminal.
};

}  // namespace weir::cli

#endif  // WEIR_CLI_SCREEN_H_
