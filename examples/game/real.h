// Some points of the experiment over sockets and in real time.

#ifndef WEIR_EXAMPLES_GAME_REAL_H_
#define WEIR_EXAMPLES_GAME_REAL_H_

namespace weir::game {

// Each prints a table and returns a status for the shell.
int RunReal();
// Small and large buffers, and what the server sees of what lies in them.
int RunBuffers();

}  // namespace weir::game

#endif  // WEIR_EXAMPLES_GAME_REAL_H_
