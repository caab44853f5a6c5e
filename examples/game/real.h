// Some points of the experiment over sockets and in real time.

#ifndef WEIR_EXAMPLES_GAME_REAL_H_
#define WEIR_EXAMPLES_GAME_REAL_H_

namespace weir::game {

// Prints a table; returns a status for the shell.
int RunReal();

}  // namespace weir::game

#endif  // WEIR_EXAMPLES_GAME_REAL_H_
